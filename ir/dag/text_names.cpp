#include "ir/dag/text_names.h"

#include "llvm/ADT/StringMap.h"

namespace piper::dag {

std::string chunk_name(const RegionTable& regions, RegionId region, std::uint32_t segment,
                       const SymbolTable& symbols) {
  std::string name;
  for (RegionId r = region; r.valid(); r = regions.parent(r)) {
    const std::string one =
        std::string(symbols.text(regions.name(r))) + std::to_string(regions.index(r));
    name = name.empty() ? one : one + "." + name;
  }
  if (name.empty()) name = "model";
  return segment > 0 ? name + "." + std::to_string(segment) : name;
}

std::uint32_t input_ports(const Dag& dag, const Node& node) {
  return node.num_inputs == 0 ? 0 : dag.edges[node.first_input + node.num_inputs - 1].port + 1;
}

std::uint32_t implied_outputs(const Dag& dag, const Node& node) {
  const auto count = [](std::size_t n) { return static_cast<std::uint32_t>(n); };
  switch (node.kind) {
    case NodeKind::chunk:
      return node.body.valid() ? count(dag.bodies[node.body.index()].outputs.size()) : 0;
    case NodeKind::load:
    case NodeKind::count:
    case NodeKind::sum_squares:
    case NodeKind::norm: return 1;
    case NodeKind::update:
      if (!node.subject.bucket().valid()) return 0;
      return dag.parameter_values(dag.buckets[node.subject.bucket().index()]) +
             (dag.buckets[node.subject.bucket().index()].state_on_host ? 1 : 0);
    case NodeKind::reduce_scatter:
      return node.subject.bucket().valid()
                 ? dag.gradient_values(dag.buckets[node.subject.bucket().index()])
                 : 0;
    case NodeKind::all_gather:
      return node.subject.bucket().valid()
                 ? count(dag.buckets[node.subject.bucket().index()].params.size())
                 : 0;
    case NodeKind::report:
    case NodeKind::send: return 0;
    case NodeKind::offload: return node.subject.bucket().valid() ? 0 : input_ports(dag, node);
    case NodeKind::fetch: return node.subject.bucket().valid() ? 1 : input_ports(dag, node);
    case NodeKind::accumulate: return input_ports(dag, node);
    case NodeKind::all_reduce: return input_ports(dag, dag.adding_member(node));
    case NodeKind::recv:
    case NodeKind::all_gather_v: {
      if (!node.comm.valid()) return 0;
      std::uint32_t total = 0;
      for (const NodeId member : dag.comms[node.comm.index()].members) {
        const Node& other = dag.nodes[member.index()];
        if (gathers_lists(node.kind) || is_send(other.kind)) total += input_ports(dag, other);
      }
      return total;
    }
  }
  return 0;
}

std::vector<std::string> communicator_names(const Dag& dag, const Plan& plan) {
  std::vector<std::string> names;
  llvm::StringMap<std::uint32_t> used;
  for (const Communicator& communicator : plan.communicators) {
    std::string name;
    for (const DeviceSetId member : communicator.members) {
      if (!name.empty()) name += communicator.kind == Communicator::Kind::pair ? ".to." : ".";
      name += place_name(dag.device_sets[member], dag.mesh, dag.context->symbols);
    }
    // Invalid too where a text lists a node that is no communication.
    const CommId front = communicator.comms.empty() ? CommId() : communicator.comms.front();
    const Comm* const first = front.valid() ? &dag.comms[front.index()] : nullptr;
    const bool copies = first != nullptr && !first->members.empty() &&
                        copies_to_or_from_host(dag.node(first->members.front()).kind);
    if (communicator.kind == Communicator::Kind::group) name = (copies ? "host." : "group.") + name;
    const std::uint32_t count = ++used[name];
    if (count > 1) name += ".no" + std::to_string(count);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace piper::dag
