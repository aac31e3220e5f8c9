#include "passes/order/compute_order.h"

#include <algorithm>
#include <utility>

#include "passes/order/linearise.h"
#include "passes/order/list_schedule.h"
#include "passes/order/order_cycle.h"

namespace piper::passes {

using namespace dag;

namespace {

Adjacency asked_for(const ClaimedOrder& claimed, const WorkGraph& graph) {
  std::vector<Adjacency::Pair> edges = claimed.edges;
  edges.insert(edges.end(), claimed.named.begin(), claimed.named.end());
  edges.insert(edges.end(), claimed.late.begin(), claimed.late.end());
  return Adjacency(graph.units(), edges);
}

/// All units in an order that agrees with the claimed ones and the data flow. Nothing after
/// reporting a contradiction between them.
std::optional<std::vector<std::uint32_t>> check_data_flow(const Dag& dag,
                                                          const ClaimedOrder& claimed,
                                                          const WorkGraph& graph,
                                                          const Adjacency& asked,
                                                          DiagnosticSink& sink) {
  std::vector<std::uint32_t> topological = topological_order(graph, asked);
  if (topological.size() == graph.units()) return topological;
  report_order_cycle(dag, claimed, graph, asked, topological, sink);
  return std::nullopt;
}

/// An `R` without an order counts as part of the following backward.
std::vector<bool> attached_units(const Dag& dag, const ClaimedOrder& claimed,
                                 const WorkGraph& graph) {
  std::vector<bool> attached(graph.units());
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
    const NodeId node = graph.front(unit);
    attached[unit] = runs_body(dag.node(node).kind) && dag.node(node).pass == Pass::R &&
                     !claimed.loc[node.index()].valid();
  }
  return attached;
}

}  // namespace

std::optional<ComputeOrder> compute_order(const Dag& dag, const ClaimedOrder& claimed,
                                          const WorkGraph& graph, const RoleTable& roles,
                                          DiagnosticSink& sink) {
  const Adjacency asked = asked_for(claimed, graph);
  std::optional<std::vector<std::uint32_t>> found =
      check_data_flow(dag, claimed, graph, asked, sink);
  if (!found) return std::nullopt;
  std::vector<std::uint32_t>& topological = *found;
  const auto is_chunk = [&](std::uint32_t unit) {
    return graph.sort(unit) == WorkGraph::Sort::work;
  };
  const auto on_unclaimed = [&](DeviceSetId devices) {
    const auto roles_of = roles.roles_of(devices);
    return std::any_of(roles_of.begin(), roles_of.end(), [&](std::uint32_t role) {
      return claimed.claim_of_role[role] == ClaimedOrder::kUnclaimed;
    });
  };
  bool any_unclaimed = false;
  for (std::uint32_t unit = 0; unit < graph.units() && !any_unclaimed; ++unit)
    any_unclaimed = is_chunk(unit) && on_unclaimed(graph.devices(unit));

  std::vector<NodeId> compute;
  compute.reserve(dag.nodes.size());
  const std::vector<bool> attached =
      any_unclaimed ? attached_units(dag, claimed, graph) : std::vector<bool>();
  std::vector<Priority> priorities;
  if (any_unclaimed) priorities = default_priorities(dag, graph, topological);
  if (claimed.has_groups) {
    // Ready first at op-table costs, then the longest remaining path, then text order.
    const std::vector<std::int64_t> body_cost = body_costs(dag);
    std::vector<std::int64_t> cost(graph.units(), 0);
    for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
      if (is_chunk(unit)) cost[unit] = body_cost[dag.node(graph.front(unit)).body.index()];
    }
    const std::vector<std::int64_t> path = remaining_paths(graph, asked, topological, cost);
    std::int64_t longest = 0;
    for (const std::int64_t length : path) longest = std::max(longest, length);
    std::vector<Priority> by_path =
        any_unclaimed ? priorities : std::vector<Priority>(graph.units());
    for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
      const NodeId node = graph.front(unit);
      if (is_chunk(unit) && claimed.loc[node.index()].valid())
        by_path[unit] = {static_cast<std::uint64_t>(longest - path[unit]),
                         claimed.text_position[node.index()]};
    }
    compute = list_schedule(dag, graph, asked, roles, cost, by_path, attached);
  } else {
    for (const std::uint32_t unit : topological) {
      if (is_chunk(unit)) compute.push_back(graph.front(unit));
    }
  }
  if (!any_unclaimed && !claimed.has_groups)
    return ComputeOrder{std::move(compute), std::move(topological)};
  if (!any_unclaimed) return ComputeOrder{std::move(compute), {}};

  // The rest at unit costs, with the claimed ranks as they are.
  std::vector<NodeId> fixed;
  for (const NodeId node : compute) {
    if (claimed.loc[node.index()].valid()) fixed.push_back(node);
  }
  std::vector<Adjacency::Pair> kept = chains(graph, roles, fixed);
  kept.insert(kept.end(), claimed.named.begin(), claimed.named.end());
  std::vector<std::int64_t> cost(graph.units(), 0);
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit)
    cost[unit] = unit_cost(dag.node(graph.front(unit)));
  return ComputeOrder{
      list_schedule(dag, graph, Adjacency(graph.units(), kept), roles, cost, priorities, attached),
      {}};
}

}  // namespace piper::passes
