#include "passes/order.h"

#include <algorithm>
#include <optional>

#include "ir/parallel.h"
#include "passes/apply_orders.h"
#include "passes/linearise.h"
#include "passes/streams.h"

namespace piper::passes {

using namespace dag;

std::optional<Ordered> order(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink, llvm::function_ref<void()> beside) {
  PendingWorkGraph pending;
  std::optional<RoleTable> role_table;
  Selection selection(dag);
  ClaimedOrder claimed;
  const std::size_t errors = sink.error_count();
  const auto claim = [&] {
    role_table.emplace(dag, claimed_sets(strategy));
    selection.work();
    claimed = apply_orders(dag, strategy, pending, *role_table, selection, sink);
  };
  run_both(dag.nodes.size(), [&] { pending.make(dag); }, claim);
  const WorkGraph& graph = pending.connected();
  if (sink.error_count() > errors) {
    check_data_flow(dag, claimed, graph, sink);
    return std::nullopt;
  }
  const RoleTable& roles = *role_table;
  const std::optional<ComputeOrder> compute = compute_order(dag, claimed, graph, roles, sink);
  if (!compute) return std::nullopt;

  // Messages are numbered as their senders make them, or as an order names them: both follow from the compute orders alone.
  const std::vector<Adjacency::Pair> after = chains(graph, roles, compute->nodes);
  std::vector<std::uint32_t> topological = compute->topological;
  if (topological.empty()) {
    std::vector<Adjacency::Pair> edges = after;
    edges.insert(edges.end(), claimed.named.begin(), claimed.named.end());
    topological = topological_order(graph, Adjacency(graph.units(), edges));
  }
  std::vector<std::uint32_t> position(graph.units(), 0);
  for (std::uint32_t i = 0; i < topological.size(); ++i) position[topological[i]] = i;
  std::optional<Communicators> communicators = assign_streams(dag, strategy, graph, selection, roles, position, sink);
  if (!communicators) return std::nullopt;
  // The linear order is one thread's work; a second one has time for what needs no order.
  std::vector<std::uint32_t> node_position;
  std::optional<RoleNodes> nodes;
  const auto decide = [&] { node_position = linearise(dag, graph, roles, *communicators, compute->nodes, after, claimed.named); };
  const auto note = [&] {
    for (Node& node : dag.nodes) node.stream = node.comm.valid() ? communicators->list[communicators->of_comm[node.comm.index()].index()].stream : StreamId(0);
    dag.temporal.clear();
    dag.temporal.reserve(after.size() + claimed.waits.size());
    for (const auto& [before, next] : after) dag.temporal.emplace_back(graph.front(before), graph.front(next));
    dag.temporal.insert(dag.temporal.end(), claimed.waits.begin(), claimed.waits.end());
    nodes.emplace(dag, roles);
    beside();
  };
  run_both(dag.nodes.size(), decide, note);
  if (node_position.size() < dag.nodes.size()) {
    sink.report(Code::compiler_bug, LocId(), "a checked order has no linear order of all its actions");
    return std::nullopt;
  }
  sort_sums(dag, graph, *communicators, node_position);
  nodes->put(dag.order, roles);
  dag.level = Level::ordered;
  Ordered ordered{std::move(*communicators), std::move(*role_table), std::move(*nodes), {}};
  for (const auto& [before, communication] : claimed.waits) ordered.issued_after.emplace_back(communication, before);
  std::sort(ordered.issued_after.begin(), ordered.issued_after.end());
  return ordered;
}

void check_orders(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  if (dag.level < Level::placed) {  // every rank may run everything
    const DeviceSetId everything = dag.device_sets.intern({std::vector<std::int32_t>(dag.mesh.axes.size(), DeviceSet::kWhole)});
    for (Node& node : dag.nodes) node.devices = everything;
  }
  PendingWorkGraph graph;
  graph.make(dag);
  const RoleTable roles(dag, claimed_sets(strategy));
  Selection selection(dag);
  const ClaimedOrder claimed = apply_orders(dag, strategy, graph, roles, selection, sink);
  check_data_flow(dag, claimed, graph.connected(), sink);
}

}  // namespace piper::passes
