#pragma once
// The training DAG: every computation and communication of one step on all devices
// (docs/execution.md section 2).
//
// One type for six levels; `level` determines which facts exist. A node on k devices is one node
// (SPMD). Nodes are flat, ids are positions, text names are computed. Values travel over input
// ports; class `param` reads the parameters that the Update of the previous step wrote (distance 1,
// never part of a cycle); class `grad` adds: a port of an Accumulate may have several sources,
// summed in the listed order.
//
//   built, split: chunks and their edges       placed: a device set on every node        communicating: Send/Recv pairs, collectives, Norm
//   ordered: streams and one global linear order       planned: actions, buffers, waits, communicators per role (`plan.h`)

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/dag/body.h"
#include "ir/dag/node_kind.h"
#include "ir/directive/directive.h"
#include "ir/mesh.h"
#include "llvm/ADT/SmallVector.h"

namespace piper::dag {

enum class Level : std::uint8_t { built, split, placed, communicating, ordered, planned };
std::string_view level_name(Level level);

using NodeId = Id<struct DagNodeTag>;
using ChunkId = Id<struct ChunkTag>;
using StreamId = Id<struct StreamTag>;
using CommId = Id<struct CommTag>;
using CommunicatorId = Id<struct CommunicatorTag>;

/// Indices along the split dimensions (Dag::dims), in their order; kNone where the node is not
/// split along one.
inline constexpr std::size_t kMaxSplitDims = 4;
struct Instance {
  static constexpr std::int32_t kNone = -1;
  std::array<std::int32_t, kMaxSplitDims> at{kNone, kNone, kNone, kNone};
  friend auto operator<=>(const Instance&, const Instance&) = default;
};

struct SplitDim {
  Symbol name;  // `mb`, `copy`
  Symbol of;    // `batch`
  std::uint32_t extent = 1;
  LocId loc;
};

enum class EdgeClass : std::uint8_t { data, param, grad };

/// Output `index` of a node.
struct Port {
  NodeId node;
  std::uint32_t index = 0;
  friend auto operator<=>(const Port&, const Port&) = default;
};

/// One edge into a node: `port` is the input port it feeds. Only ports of class grad (of in-place
/// sums) have several edges. A param edge of a forward-only program, and that of a frozen
/// parameter, has no source node: `source.index` is then the parameter's position in its bucket,
/// which is found by parameter.
struct Input {
  Port source;
  std::uint32_t port = 0;
  EdgeClass cls = EdgeClass::data;
};

/// One cache line: tables of 10^6 nodes are walked, and also accessed at random.
struct alignas(64) Node {
  NodeKind kind = NodeKind::chunk;
  Pass pass = Pass::F;  // chunk; messages: the pass whose values they carry
  LayoutId layout;      // load: of its value; other layouts follow (`layout_of`)
  ChunkId chunk;        // chunk; messages: the chunk that made (send) or reads (recv) the values
  BodyId body;          // chunk
  Instance instance;
  DeviceSetId devices;  // from level placed on
  StreamId stream;      // from level ordered on
  CommId comm;          // communications
  Subject subject;      // its subject: an input, a loss, a count, a bucket, the norm
  LocId loc;            // the directive or model line that it comes from
  std::uint32_t first_input = 0, num_inputs = 0;  // into the edge pool
  std::uint32_t num_outputs = 0;

  /// It sums the devices' contributions to the gradients of a bucket.
  bool reduces_gradients() const { return reduces_members(kind) && subject.bucket().valid(); }
  /// Its outputs are the parameters of its bucket.
  bool makes_parameters() const { return writes_state(kind) || gathers_shards(kind); }
};
static_assert(sizeof(Node) == 64);

/// A region instance at the granularity that directives select: a convex part of the model with one
/// innermost selected region.
struct Chunk {
  RegionId region;                     // of the model's region table, reduced to the selected names
  std::uint32_t segment = 0;           // number among the segments of that region
  Symbol name;                         // `stage2`, `stage2.block4.moe`, `.1` appended for segment 1
  std::array<BodyId, kPasses> bodies;  // by Pass; invalid if there is none. B = BI and BW in one
  // F of the instances that have an R: it keeps only the values that R reads.
  BodyId recomputed_forward;
  LocId loc;
};

/// A matched communication: one identity for all its members.
struct Comm {
  // Send, recv; or one node per device set of a collective, in set order.
  llvm::SmallVector<NodeId, 2> members;
  // Collectives: mesh axes along which the devices of each member set take part; the same for all
  // members.
  AxisMask axes = 0;
  LocId loc;
};

/// Parameters that are reduced and updated together, flat and contiguous in this order, with one
/// set of owners; or frozen ones, which are neither reduced nor updated but may be sharded. Frozen
/// buckets come last.
struct Bucket {
  std::vector<tensor::ParamId> params;
  // Every device set that uses them keeps a copy; the first is counted in the norm and written to
  // checkpoints.
  std::vector<DeviceSetId> owners;
  // of its gradients before reduction: partial along the axes over which they are reduced
  LayoutId unreduced;
  // of each at rest. Flat and sharded equally, all over the same axes: the state alone, gradients
  // too, or all three (ZeRO 1, 2, 3); frozen buckets have parameters alone
  LayoutId state, gradients, parameters;
  directive::Reduce reduced = directive::Reduce::step;  // sharded gradients: when they are reduced
  // Sharded parameters: how many gathered intervals before its first use an all-gather is placed.
  std::uint32_t prefetch = 0;
  // From level ordered: the optimizer state is in the memory of the host except while its update
  // runs.
  bool state_on_host = false;
  Symbol name;  // `stage0.0`
  LocId loc;

  bool sharded() const { return !state.replicated() || !parameters.replicated(); }
  /// It is reduced or gathered once per gathered interval, not once per step.
  bool gathered_per_use() const { return !gradients.replicated() || !parameters.replicated(); }
};

struct Stream {
  Symbol name;  // stream 0 is `compute`
  bool high_priority = false;
  std::optional<std::uint32_t> window;  // requested by the user
  LocId loc;
};

struct Plan;  // plan.h

/// The facts that a text must contain so that a missing action is found from `.pir` alone.
struct Dag {
  explicit Dag(Context& context);
  Dag(Dag&&);
  Dag& operator=(Dag&&);
  ~Dag();

  Context* context;
  Level level = Level::built;
  bool forward_only = false;  // a held-out program: F alone, nothing saved

  // ---- the model's facts, from level built on
  RegionTable regions;
  std::vector<tensor::Param> params;  // `value` refers to the model's graph and is not used here
  std::vector<tensor::Type> param_types;
  std::vector<tensor::Input> inputs;
  std::vector<tensor::Type> input_types;  // global extents
  std::vector<tensor::Loss> losses;
  std::vector<Chunk> chunks;
  std::vector<Body> bodies;
  directive::Settings settings;

  // ---- strategy facts
  Mesh mesh;
  DeviceSetTable device_sets;
  Symbol stages;  // the name of the stages if exactly one directive partitions
  std::vector<SplitDim> dims;
  std::vector<Bucket> buckets;
  std::vector<Stream> streams;
  std::vector<directive::Require> requirements;

  // ---- the graph
  std::vector<Node> nodes;
  // Pool; a node's inputs are consecutive, ascending by port.
  std::vector<Input> edges;
  // (before, after): requested or chosen order on one rank.
  std::vector<std::pair<NodeId, NodeId>> temporal;
  /// An all-gather of sharded parameters that an order places: after `after`, in place of `whole`
  /// for `uses`.
  struct GatherInterval {
    NodeId whole;  // the all-gather of the whole step
    std::vector<NodeId> uses, after;
    LocId loc;
  };
  // From the orders until gathered intervals are made from them; empty at the end of every level.
  std::vector<GatherInterval> gather_intervals;
  std::vector<Comm> comms;
  // Ordered: the global linear order of all nodes.
  std::vector<NodeId> order;
  // Ordered: overlap group per node (numbered per rank from 0), kNoGroup outside; empty: none.
  std::vector<std::uint32_t> group;
  // Ordered: the ranks that the order names (device sets), for `show orders`.
  std::vector<directive::RankSteps> claims;
  static constexpr std::uint32_t kNoGroup = 0xFFFFFFFFu;

  std::unique_ptr<Plan> plan;  // planned

  std::span<const Input> inputs_of(const Node& node) const {
    return {edges.data() + node.first_input, node.num_inputs};
  }
  /// The sources of one port, in their order.
  std::span<const Input> inputs_of(const Node& node, std::uint32_t port) const;
  const Node& node(NodeId id) const { return nodes[id.index()]; }
  /// The node itself if it contributes to the reduction, else the first member of its communication
  /// that does.
  const Node& adding_member(const Node& reduction) const;
  /// Invalid for the norm and for no subject.
  Symbol subject_symbol(Subject subject) const;
  /// `tokens`, `gpt.loss.0`, `stage0.0`, `norm`; empty for no subject.
  std::string_view subject_name(Subject subject) const;
  NodeId add(const Node& node, std::span<const Input> inputs);
  /// Registers a load that was not added by `add`: names of loads that differ only in layout
  /// contain the axes that shard them.
  void note_load(const Node& load);
  /// Forgets all loads, after they were removed from the table.
  void forget_loads();
  /// Replaces the inputs of a node: they move to the end of the pool.
  void set_inputs(NodeId node, std::span<const Input> inputs);
  /// The global type of an output. Outputs of an all_gather_v are listed by member, each member's
  /// inputs in order. A scalar of type f32 if the node's inputs are incomplete. The reference stays
  /// valid as long as the DAG's tables.
  const tensor::Type& output_type(Port port) const;
  /// The number of equal parts into which split dimensions divide the samples of the batch for the
  /// node.
  std::int64_t samples_divisor(const Node& node) const;
  /// Its parameters keep their initial values.
  bool frozen(const Bucket& bucket) const {
    return !bucket.params.empty() && params[bucket.params.front().index()].frozen;
  }
  /// The number of trained buckets, which come first.
  std::size_t trained_buckets() const;
  /// The number of devices along all of these axes.
  std::int64_t extent(AxisMask axes) const;
  /// The axes over which the gradients of a bucket are reduced, and those that shard its sharded
  /// states.
  AxisMask reduced_over(const Bucket& bucket) const;
  AxisMask sharded_over(const Bucket& bucket) const;
  /// The layout of a bucket's sharded states; replicated if there are none.
  LayoutId sharded_layout(const Bucket& bucket) const {
    return bucket.state.replicated() ? bucket.parameters : bucket.state;
  }
  /// From level communicating on, sharded gradients of a bucket are one value, the shard, and so
  /// are the sharded parameters that an update leaves.
  bool shards_gradients(const Bucket& bucket) const {
    return level >= Level::communicating && !bucket.gradients.replicated();
  }
  bool shards_parameters(const Bucket& bucket) const {
    return level >= Level::communicating && !bucket.parameters.replicated();
  }
  /// The node's output for its bucket is one device's shard: a sum of sharded gradients, or sharded
  /// updated parameters.
  bool leaves_shard(const Node& node) const {
    if (!node.subject.bucket().valid()) return false;
    const Bucket& bucket = buckets[node.subject.bucket().index()];
    if (adds_in_place(node.kind)) return adds_shards(node);
    return reduces_members(node.kind) ? shards_gradients(bucket)
                                      : writes_state(node.kind) && shards_parameters(bucket);
  }
  /// An in-place sum of the results of reductions, not of contributions of work.
  bool adds_shards(const Node& node) const {
    const Input* const first =
        adds_in_place(node.kind) && node.num_inputs > 0 ? &edges[node.first_input] : nullptr;
    return first != nullptr && first->source.node.valid() &&
           reduces_members(nodes[first->source.node.index()].kind);
  }
  /// The number of values of a sum of the bucket's gradients, and of an update.
  std::uint32_t gradient_values(const Bucket& bucket) const {
    return shards_gradients(bucket) ? 1 : static_cast<std::uint32_t>(bucket.params.size());
  }
  std::uint32_t parameter_values(const Bucket& bucket) const {
    return shards_parameters(bucket) ? 1 : static_cast<std::uint32_t>(bucket.params.size());
  }
  /// The last output of an update whose optimizer state is on the host: the new state, in the
  /// buffer of its last input.
  bool is_optimizer_state(const Node& node, std::uint32_t output) const {
    return writes_state(node.kind) &&
           output == parameter_values(buckets[node.subject.bucket().index()]);
  }
  /// `F.stage2.mb3`, `B.stage0.mb1.copy1` (dimensions in the order of `dims`),
  /// `accumulate.stage0.0`, `update.stage0.0`, `report.gpt.loss.0`, `count.gpt.loss.0`,
  /// `all_reduce.head.0`, `all_gather.stage0.0`; `send.F.stage0.mb1.pp1`, `recv.F.stage0.mb1.pp1`:
  /// the pass, chunk and instance that made the values and the destination; `load.tokens.mb3.pp0`,
  /// `norm.pp0` (no devices below level placed); if regions on one device set read an input in
  /// several layouts, the axes that shard it follow: `load.tokens.mb3.pp0` and
  /// `load.tokens.mb3.pp0.dp`. Nodes of one bucket with several owners, counts, and collectives of
  /// losses and norms, have their device set appended (`all_reduce.gpt.loss.0.pp1`,
  /// `all_gather_v.norm.pp0`). Collectives of one gathered interval of a bucket, and sums of full
  /// gradients, are named by the work that begins or ends it (`all_gather.stage0.0.F.stage0.mb3`,
  /// `accumulate.stage0.0.B.stage0.mb3`, `reduce_scatter.stage0.0.B.stage0.mb3`), and so are copies
  /// (`offload.F.stage0.mb3`, `fetch.B.stage0.mb3`). Unique in a legal DAG, in time independent of
  /// its size.
  std::string name(NodeId node) const;
  /// The same with that text in place of its indices along split dimensions, if it has any:
  /// `F.stage2.mb` for `F.stage2.mb3`.
  std::string name(NodeId node, std::string_view instance) const;
  /// `cluster[pp: 1]`, the name of devices in messages.
  std::string text(DeviceSetId set) const {
    return print(device_sets[set], mesh, context->symbols);
  }

 private:
  struct Derived;
  std::unique_ptr<Derived> derived_;
};

}  // namespace piper::dag
