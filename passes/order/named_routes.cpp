#include "passes/order/named_routes.h"

#include <algorithm>

namespace piper::passes {

using namespace dag;

void NamedRoutes::begin_rank() {
  named_.clear();
  last_.clear();
  step_.clear();
  groups_.clear();
}

NamedRoutes::Units NamedRoutes::name(const Dag& dag, const WorkGraph& graph, std::uint32_t unit) {
  if (!named_.insert(unit).second) return {};
  Route route{is_backward(dag.node(graph.front(unit)).pass), {}};
  for (const NodeId member : graph.members(unit))
    route.second.emplace_back(dag.node(member).kind, dag.node(member).devices);
  std::sort(route.second.begin(), route.second.end());
  const auto before = last_.find(route);
  step_[std::move(route)].push_back(unit);
  return before == last_.end() ? Units() : before->second;
}

void NamedRoutes::end_step() {
  for (auto& [route, units] : step_) last_[route] = std::move(units);
  step_.clear();
}

void NamedRoutes::begin_group() { groups_.push_back({last_, {}}); }

void NamedRoutes::begin_member() {
  end_member();
  last_ = groups_.back().before;
}

void NamedRoutes::end_member() {
  Group& group = groups_.back();
  for (const auto& [route, units] : last_) {
    const auto before = group.before.find(route);
    if (before != group.before.end() && before->second == units) continue;
    Units& after = group.after[route];
    after.insert(after.end(), units.begin(), units.end());
  }
}

void NamedRoutes::end_group() {
  end_member();
  Group group = std::move(groups_.back());
  groups_.pop_back();
  last_ = std::move(group.before);
  for (auto& [route, units] : group.after) last_[route] = std::move(units);
}

}  // namespace piper::passes
