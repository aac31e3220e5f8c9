#pragma once
// What all checks look at: the DAG, where to report, and tables derived from it once. Used inside ir/verify alone.

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

/// Where a check reports, and when it has said enough.
struct Reports {
  DiagnosticSink& sink;
  std::size_t errors_before;

  bool ok() const { return sink.error_count() == errors_before; }
  /// Enough was reported: checks stop.
  bool enough() const { return sink.error_count() >= errors_before + 24; }
};

/// Tables derived from the DAG. `check_tables` and `check_flow` fill them.
struct FactTables {
  std::vector<std::uint32_t> output_base;  // per node: number of its output 0 among all outputs; one more entry
  std::vector<std::uint32_t> origin;       // per output: the output whose value it carries: what a recv, an all_gather or a copy passes on
  std::vector<std::uint32_t> owner;        // per output: its node
  std::vector<bool> shared_body;           // per body: several chunks use it, so its ports name the values of one of them
  std::vector<NodeKind> kind;              // per node, beside each other: the node table is large, and edges visit it in no order
  std::vector<NodeId> around;              // the nodes that are no chunk, load, send or recv: few
  std::vector<std::uint32_t> position;     // per node: its place in the global order; empty where the order is not one of all nodes
  std::vector<std::int64_t> output_bytes;  // per output: size of one device's part
  std::vector<std::uint32_t> added_to;     // per output: the parameter to whose gradient it is added, else kNone; `check_gradients` fills it
  bool all_on_devices_and_streams = true;  // every node says both
  bool follows_order = false;              // every node stands in the global order after all that it needs
};

struct Facts {
  Facts(const Dag& dag, DiagnosticSink& sink) : dag(dag), sink(sink), errors_before(sink.error_count()) {}
  /// The same facts with reports elsewhere. They share the tables, which stay as they are from here on.
  Facts(const Facts& facts, DiagnosticSink& sink) : dag(facts.dag), sink(sink), errors_before(sink.error_count()), tables(facts.tables) {}

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
  std::uint32_t outputs_of(NodeId node) const { return output_base[node.index() + 1] - output_base[node.index()]; }
  Port port(std::uint32_t output) const { return {NodeId(owner[output]), output - output_base[owner[output]]}; }
  Port origin_of(Port source) const { return port(origin[output(source)]); }

  Reports reports() const { return {sink, errors_before}; }
  bool ok() const { return reports().ok(); }
  bool enough() const { return reports().enough(); }
  const Node& node(NodeId id) const { return dag.nodes[id.index()]; }
  std::string name(NodeId id) const { return dag.name(id); }
  std::string text(Port port) const { return port.index == 0 ? name(port.node) : name(port.node) + ":" + std::to_string(port.index); }
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

/// Elements of a parameter with those up to the next boundary of 64 bytes.
std::int64_t whole_elements(const Dag& dag, tensor::ParamId param);
/// Elements of a bucket: those of its parameters, each from such a boundary on; where its state is cut, so many more that all blocks are whole.
std::int64_t bucket_elements(const Dag& dag, const dag::Bucket& bucket);
tensor::DType parameter_dtype(const Dag& dag, const dag::Bucket& bucket);
/// Bytes of so many elements of a bucket's parameters, and of its gradients and every slot of its optimizer state: those of bf16 parameters are f32.
std::int64_t parameter_bytes(const Dag& dag, const dag::Bucket& bucket, std::int64_t elements);
std::int64_t gradient_bytes(const Dag& dag, const dag::Bucket& bucket, std::int64_t elements);
/// The devices that share the state of a bucket; 1 where it is whole.
std::int64_t shares_of(const Dag& dag, const dag::Bucket& bucket);

/// Ids inside their tables, so that every later check may index freely. False: nothing else can be checked.
bool check_tables(Facts& facts);
/// Nothing is said that a later level says.
void check_levels(Facts& facts);
/// Settings of the train, and what the header says of elements, samples and masks.
void check_header(Facts& facts);
/// Edges: acyclic, one source per port, classes, types, values and instances. Fills `origin`.
void check_flow(Facts& facts);
/// Which values stay in a chunk: ports say of their edges what is so.
void check_ports(Facts& facts);
/// Bodies that chunks name, run or not: kinds of ports, gradients of all that is trained, values from one to another.
void check_bodies(Facts& facts);
/// Homes of buckets: the devices of the work that uses them, each once, with several devices along the axes of their layouts.
void check_homes(Facts& facts);
/// What runs again: it computes what its forward did, from what that read or kept, for its own backward alone.
void check_recompute(Facts& facts);
/// Every instance, parameter, loss once.
void check_completeness(Facts& facts);
/// Every contribution to a gradient once, on the way to its update. Fills `added_to`.
void check_gradients(Facts& facts);
/// Gathers and reductions of what is cut, and copies to the host: they are called after work that they serve.
void check_rounds(Facts& facts);
/// Chunks that share a body: each is held to its own parameters, inputs and neighbours.
void check_instances(Facts& facts);
/// Masked losses: what divides them is counted over the whole batch.
void check_counts(Facts& facts);
/// What a loss sum at a report is the sum of, through all_reduce, messages and gathers; adds the axes it is reduced over.
Port loss_origin(const Facts& facts, Port source, AxisMask& over);
/// What each device holds of values: parts follow from parts, and devices have the axes that cut them.
void check_bucket_layouts(Facts& facts);
void check_layouts(Facts& facts);
/// The axes that divide the samples of a chunk or load; nothing where it has none. Below level placed none does.
std::optional<AxisMask> divided_over(const Dag& dag, const Node& node);
/// The axes along which the gradients of a bucket are made as summands, and those that cut what of it is cut.
AxisMask reduced_over(const Dag& dag, const dag::Bucket& bucket);
AxisMask cut_over(const Dag& dag, const dag::Bucket& bucket);
/// The axes along which an output of a chunk is a summand.
AxisMask summed_over(const Dag& dag, const Node& node, std::uint32_t output);
/// Devices; no edge between device sets; matched communication.
void check_placement(Facts& facts);
void check_order(Facts& facts);
/// Devices that follow the global order, one communication at a time, come to its end.
void check_issue_order(Facts& facts);
/// The bounds on measures that the header requires, of a plan in which all else is right.
void check_measures(const Facts& facts);
/// Claims of ranks and the overlap groups of their orders.
void check_claims(Facts& facts);

}  // namespace piper::verify
