#include "passes/simulate/work_times.h"

namespace piper::passes {

using namespace dag;

std::vector<std::vector<std::uint32_t>> chunks_of_roles(const Dag& dag, const WorkGraph& graph,
                                                        const RoleTable& roles) {
  std::vector<std::vector<std::uint32_t>> chunks(roles.size());
  for (const NodeId id : dag.order) {
    const Node& node = dag.node(id);
    if (!runs_body(node.kind)) continue;
    for (const std::uint32_t role : roles.roles_of(node.devices))
      chunks[role].push_back(graph.unit_of(id));
  }
  return chunks;
}

WorkTimes::WorkTimes(const Dag& dag, const WorkGraph& graph, const RoleTable& roles,
                     const WorkRules& rules)
    : runs_with_(rules.runs_with) {
  const auto is_message = [&](std::uint32_t unit) {
    return dag::is_message(dag.node(graph.front(unit)).kind);
  };
  network_.duration = rules.cost;
  const auto link = [&](std::uint32_t from, std::uint32_t to, double latency) {
    if (activity(from) == activity(to)) return;
    network_.links.push_back({activity(from), activity(to), latency});
    from_.push_back(from);
  };
  // Links of the roles come first, because of equal causes they are the nearest.
  for (const std::vector<std::uint32_t>& sequence : rules.sequences) {
    for (std::size_t i = 1; i < sequence.size(); ++i) link(sequence[i - 1], sequence[i], 0);
  }
  for (const Link& asked : rules.more) link(asked.from, asked.to, asked.latency);
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
    if (graph.sort(unit) == WorkGraph::Sort::communication && is_message(unit))
      network_.duration[unit] = rules.latency;
    for (const std::uint32_t to : graph.successors(unit)) {
      const bool apart = rules.latency > 0 && graph.sort(unit) == WorkGraph::Sort::work &&
                         graph.sort(to) == WorkGraph::Sort::work &&
                         !roles.intersects(graph.devices(unit), graph.devices(to));
      link(unit, to, apart ? rules.latency : 0);
    }
  }
  times_ = asap_times(network_, *dag.context);
}

std::vector<bool> WorkTimes::started() const {
  std::vector<bool> started(network_.duration.size(), false);
  for (const std::uint32_t each : times_.order) started[each] = true;
  for (std::size_t unit = 0; unit < runs_with_.size(); ++unit)
    started[unit] = started[runs_with_[unit]];
  return started;
}

}  // namespace piper::passes
