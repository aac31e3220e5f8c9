#pragma once
// The input of all checks: the DAG, the sink, and tables derived from the DAG once. Used inside
// ir/verify alone.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::verify {

using dag::Action;
using dag::Dag;
using dag::Input;
using dag::Level;
using dag::Node;
using dag::NodeId;
using dag::NodeKind;
using dag::Port;
using dag::PortKind;

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;

/// The sink of a check, and its limit of reports.
struct Reports {
  DiagnosticSink& sink;
  std::size_t errors_before;

  bool ok() const { return sink.error_count() == errors_before; }
  /// Enough errors were reported: checks stop.
  bool enough() const { return sink.error_count() >= errors_before + 24; }
};

/// Tables derived from the DAG. `check_tables` and `check_flow` fill them.
struct FactTables {
  // Per node: number of its output 0 among all outputs; one more entry.
  std::vector<std::uint32_t> output_base;
  // Per output: the output that first made its value; a recv, an all_gather_v or a copy passes
  // values on.
  std::vector<std::uint32_t> origin;
  std::vector<std::uint32_t> owner;  // per output: its node
  // Per body: several chunks use it, so its ports name the values of one of them.
  std::vector<bool> shared_body;
  // Per node, in a compact table, because edges visit nodes at random.
  std::vector<NodeKind> kind;
  std::vector<NodeId> around;  // the few nodes that are no chunk, load, send or recv
  // Per node: its place in the global order; empty if the order does not contain every node once.
  std::vector<std::uint32_t> position;
  std::vector<std::int64_t> output_bytes;  // per output: local size
  // Per output: the parameter to whose gradient it is added, else kNone; `check_gradients` fills
  // it.
  std::vector<std::uint32_t> added_to;
  bool all_on_devices_and_streams = true;  // every node has both
  bool follows_order = false;              // the global order is a topological order
};

struct Facts {
  Facts(const Dag& dag, DiagnosticSink& sink)
      : dag(dag), sink(sink), errors_before(sink.error_count()) {}
  /// The same facts with another sink. They share the tables, which must not change afterwards.
  Facts(const Facts& facts, DiagnosticSink& sink)
      : dag(facts.dag), sink(sink), errors_before(sink.error_count()), tables(facts.tables) {}

  const Dag& dag;
  DiagnosticSink& sink;
  const std::size_t errors_before;
  const std::shared_ptr<FactTables> tables = std::make_shared<FactTables>();

  std::vector<std::uint32_t>& output_base = tables->output_base;
  std::vector<std::uint32_t>& origin = tables->origin;
  std::vector<std::uint32_t>& owner = tables->owner;
  std::vector<bool>& shared_body = tables->shared_body;
  std::vector<NodeKind>& kind = tables->kind;
  std::vector<NodeId>& around = tables->around;
  std::vector<std::uint32_t>& position = tables->position;
  std::vector<std::int64_t>& output_bytes = tables->output_bytes;
  std::vector<std::uint32_t>& added_to = tables->added_to;

  std::uint32_t output(Port port) const { return output_base[port.node.index()] + port.index; }
  std::uint32_t outputs_of(NodeId node) const {
    return output_base[node.index() + 1] - output_base[node.index()];
  }
  Port port(std::uint32_t output) const {
    return {NodeId(owner[output]), output - output_base[owner[output]]};
  }
  Port origin_of(Port source) const { return port(origin[output(source)]); }

  Reports reports() const { return {sink, errors_before}; }
  bool ok() const { return reports().ok(); }
  bool enough() const { return reports().enough(); }
  const Node& node(NodeId id) const { return dag.nodes[id.index()]; }
  std::string name(NodeId id) const { return dag.name(id); }
  std::string text(Port port) const {
    return port.index == 0 ? name(port.node) : name(port.node) + ":" + std::to_string(port.index);
  }
  std::string text(DeviceSetId set) const { return dag.text(set); }
  std::string_view text(Symbol symbol) const { return dag.context->text(symbol); }
  LocId loc(NodeId id) const { return node(id).loc; }
};

/// The sources of one input port: consecutive inputs.
template <typename Visit>
void for_each_port(const Dag& dag, const Node& node, Visit visit) {
  const std::span<const Input> inputs = dag.inputs_of(node);
  for (std::size_t i = 0; i < inputs.size();) {
    std::size_t end = i + 1;
    while (end < inputs.size() && inputs[end].port == inputs[i].port) ++end;
    visit(inputs.subspan(i, end - i));
    i = end;
  }
}

/// Elements of a parameter, padded to a multiple of 64 bytes.
std::int64_t whole_elements(const Dag& dag, tensor::ParamId param);
/// Elements of a bucket: those of its padded parameters; if its state is sharded, with padding that
/// makes all shards equal.
std::int64_t bucket_elements(const Dag& dag, const dag::Bucket& bucket);
tensor::DType parameter_dtype(const Dag& dag, const dag::Bucket& bucket);
/// Bytes of `elements` elements of a bucket's parameters, and of its gradients and each slot of its
/// optimizer state, which are f32 for bf16 parameters.
std::int64_t parameter_bytes(const Dag& dag, const dag::Bucket& bucket, std::int64_t elements);
std::int64_t gradient_bytes(const Dag& dag, const dag::Bucket& bucket, std::int64_t elements);
/// The number of shards of the state of a bucket; 1 if it is replicated.
std::int64_t shares_of(const Dag& dag, const dag::Bucket& bucket);
/// Values per parameter that an optimizer keeps of a trained bucket, with the moving average and the
/// master weights of narrow parameters.
std::int64_t slots_of(const Dag& dag, const dag::Bucket& bucket);

/// Ids inside their tables, so that every later check may index freely. False: nothing else can be
/// checked.
bool check_tables(Facts& facts);
/// There are no facts of a later level.
void check_levels(Facts& facts);
/// Settings of the train, and elements, samples and masks of the header.
void check_header(Facts& facts);
/// Edges: acyclic, one source per port, classes, types, values and instances. Fills `origin`.
void check_flow(Facts& facts);
/// The kinds of ports fit their edges: `saved` values stay in a chunk.
void check_ports(Facts& facts);
/// Bodies that chunks name, run or not: kinds of ports, gradients of all trained parameters, values
/// from one to another.
void check_bodies(Facts& facts);
/// Owners of buckets: the devices of the work that uses them, each once, with several devices along
/// the axes of their layouts.
void check_owners(Facts& facts);
/// An `R` computes the same values as its forward, from inputs and saved values of that forward,
/// for its own backward alone.
void check_recompute(Facts& facts);
/// Every instance, parameter, loss once.
void check_completeness(Facts& facts);
/// Every contribution to a gradient once, on the way to its update. Fills `added_to`.
void check_gradients(Facts& facts);
/// All-gathers and reductions of sharded buckets, and copies to the host, are named by work that
/// they serve.
void check_gather_intervals(Facts& facts);
/// Chunks that share a body: each uses its own parameters, inputs and neighbours.
void check_instances(Facts& facts);
/// Masked losses: their divisor is the count over the whole batch.
void check_counts(Facts& facts);
/// The origin of a loss sum at a report, through all_reduces, messages and gathers; adds the axes
/// over which it is reduced to `over`.
Port loss_origin(const Facts& facts, Port source, AxisMask& over);
/// Layouts of values follow from those of operands, and devices have their axes.
void check_bucket_layouts(Facts& facts);
void check_layouts(Facts& facts);
/// The axes that shard the samples of a chunk or load; nothing if it has no samples. None below
/// level placed.
std::optional<AxisMask> divided_over(const Dag& dag, const Node& node);
/// The axes along which the gradients of a bucket are partial before reduction, and those that
/// shard its sharded states.
AxisMask reduced_over(const Dag& dag, const dag::Bucket& bucket);
AxisMask sharded_over(const Dag& dag, const dag::Bucket& bucket);
/// The axes along which an output of a chunk is partial.
AxisMask summed_over(const Dag& dag, const Node& node, std::uint32_t output);
/// Devices; no edge between device sets; matched communication.
void check_placement(Facts& facts);
void check_order(Facts& facts);
/// Devices that follow the global order, one communication at a time, reach its end.
void check_issue_order(Facts& facts);
/// The `require` bounds of the header, for a plan that passed all other checks.
void check_measures(const Facts& facts);
/// Claims of ranks and the overlap groups of their orders.
void check_claims(Facts& facts);

}  // namespace piper::verify
