#include "passes/plan/sizes.h"

#include <tuple>
#include <unordered_map>

#include "passes/build/localise.h"

namespace piper::passes {

using namespace dag;

namespace {

/// Sizes of all outputs that are values of the step.
void measure_ports(const Dag& dag, Sizes& sizes) {
  std::vector<std::vector<std::int64_t>> body_bytes(dag.bodies.size());
  for (std::size_t b = 0; b < dag.bodies.size(); ++b) {
    for (const BodyPort& port : dag.bodies[b].outputs) {
      body_bytes[b].push_back(port.kind == PortKind::grad ? 0 : dag.bodies[b].graph.type(port.value).bytes());
    }
  }
  sizes.first_port.reserve(dag.nodes.size() + 1);
  sizes.first_port.push_back(0);
  sizes.port_bytes.reserve(dag.edges.size());
  const auto measure = [&](NodeId id, std::uint32_t output) { sizes.port_bytes.push_back(dag.output_type({id, output}).bytes()); };
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    const Node& node = dag.nodes[i];
    if (runs_body(node.kind)) {
      const std::vector<std::int64_t>& bytes = body_bytes[node.body.index()];
      sizes.port_bytes.insert(sizes.port_bytes.end(), bytes.begin(), bytes.end());
    } else if (node.makes_parameters() || node.reduces_gradients()) {
      sizes.port_bytes.resize(sizes.port_bytes.size() + node.num_outputs, 0);  // state
    } else if (is_recv(node.kind)) {
      for (const Input& input : dag.inputs_of(dag.node(dag.comms[node.comm.index()].members.front()))) {
        const std::uint32_t source = input.source.node.value();
        if (source < i && runs_body(dag.nodes[source].kind)) {
          sizes.port_bytes.push_back(sizes.port_bytes[sizes.first_port[source] + input.source.index]);
        } else {
          measure(input.source.node, input.source.index);
        }
      }
    } else if (gathers_members(node.kind)) {  // member by member, each member's inputs in order: to ask per output would look for its member each time
      for (const NodeId member : dag.comms[node.comm.index()].members) {
        std::uint32_t next = 0;
        for (const Input& input : dag.inputs_of(dag.node(member))) {
          if (input.port < next) continue;  // the terms of one input are of one type
          next = input.port + 1;
          measure(input.source.node, input.source.index);
        }
      }
    } else {
      for (std::uint32_t port = 0; port < node.num_outputs; ++port) measure(NodeId::at(i), port);
    }
    sizes.first_port.push_back(static_cast<std::uint32_t>(sizes.port_bytes.size()));
  }
}

/// Asks once for all bodies that run the same code, for all norms, and for all buckets of equal parameters.
class Workspaces {
 public:
  Workspaces(const Dag& dag, const WorkspaceBytes& ask) : dag_(dag), ask_(ask), of_body_(dag.bodies.size(), kUnknown) {}

  std::int64_t of(const Node& node) {
    switch (node.kind) {
      case NodeKind::chunk: {
        std::int64_t& bytes = of_body_[node.body.index()];
        if (bytes == kUnknown) bytes = of_equal_bodies(node);
        return bytes;
      }
      case NodeKind::norm:
        if (norm_ == kUnknown) norm_ = ask_(dag_, node);
        return norm_;
      case NodeKind::sum_squares:
      case NodeKind::update: {
        std::vector<tensor::Type> types;
        for (const tensor::ParamId param : dag_.buckets[node.subject.bucket().index()].params) types.push_back(dag_.param_types[param.index()]);
        const AxisMask flat = dag_.cut_over(dag_.buckets[node.subject.bucket().index()]);
        for (const auto& [kind, cut, known, bytes] : buckets_) {
          if (kind == node.kind && cut == flat && known == types) return bytes;
        }
        return std::get<3>(buckets_.emplace_back(node.kind, flat, std::move(types), ask_(dag_, node)));
      }
      case NodeKind::load: case NodeKind::count: case NodeKind::report: case NodeKind::send: case NodeKind::recv: case NodeKind::offload:
      case NodeKind::fetch: case NodeKind::all_reduce: case NodeKind::reduce_scatter: case NodeKind::gather: case NodeKind::all_gather: return 0;
    }
    return 0;
  }

 private:
  static constexpr std::int64_t kUnknown = -1;

  std::int64_t of_equal_bodies(const Node& node) {
    const Body& body = dag_.bodies[node.body.index()];
    std::vector<BodyId>& equal = by_hash_[hash_body(body)];
    for (const BodyId other : equal) {
      if (same_body(dag_.bodies[other.index()], body)) return of_body_[other.index()];
    }
    equal.push_back(node.body);
    return ask_(dag_, node);
  }

  const Dag& dag_;
  const WorkspaceBytes& ask_;
  std::vector<std::int64_t> of_body_;
  std::unordered_map<std::size_t, std::vector<BodyId>> by_hash_;
  std::int64_t norm_ = kUnknown;
  std::vector<std::tuple<NodeKind, AxisMask, std::vector<tensor::Type>, std::int64_t>> buckets_;  // few kinds of buckets differ
};

std::vector<std::int64_t> workspace_of_nodes(const Dag& dag, const WorkspaceBytes& workspace) {
  std::vector<std::int64_t> bytes(dag.nodes.size(), 0);
  if (!workspace) return bytes;
  Workspaces known(dag, workspace);
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) bytes[i] = known.of(dag.nodes[i]);
  return bytes;
}

}  // namespace

Sizes measure_sizes(const Dag& dag, const WorkspaceBytes& workspace) {
  Sizes sizes;
  sizes.workspace = workspace_of_nodes(dag, workspace);
  measure_ports(dag, sizes);
  return sizes;
}

}  // namespace piper::passes
