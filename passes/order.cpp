#include "passes/order.h"

#include "passes/apply_orders.h"
#include "passes/linearise.h"
#include "passes/streams.h"

namespace piper::passes {

bool order(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  const WorkGraph graph(dag);
  const RoleTable roles(dag, claimed_sets(strategy));
  Selection selection(dag);
  const std::optional<ClaimedOrder> claimed = apply_orders(dag, strategy, graph, roles, selection, sink);
  if (!claimed) return false;
  const std::optional<std::vector<dag::NodeId>> compute = compute_order(dag, *claimed, graph, roles, sink);
  if (!compute) return false;

  // Messages are numbered as their senders make them, or as an order names them: both follow from the compute orders alone.
  std::vector<Adjacency::Pair> edges = chains(dag, graph, roles, *compute);
  edges.insert(edges.end(), claimed->named.begin(), claimed->named.end());
  const std::vector<std::uint32_t> topological = topological_order(graph, Adjacency(graph.units(), edges));
  std::vector<std::uint32_t> position(dag.nodes.size(), 0);
  for (std::uint32_t i = 0; i < topological.size(); ++i) {
    for (const dag::NodeId member : graph.members(topological[i])) position[member.index()] = i;
  }
  const std::optional<Communicators> communicators = assign_streams(dag, strategy, selection, roles, position, sink);
  if (!communicators) return false;
  if (!linearise(dag, graph, roles, *communicators, *compute, claimed->named)) {
    sink.report(Code::compiler_bug, LocId(), "a checked order has no linear order of all its actions");
    return false;
  }
  dag.level = dag::Level::ordered;
  return true;
}

}  // namespace piper::passes
