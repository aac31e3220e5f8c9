#include "passes/order/order_cycle_claims.h"

#include <algorithm>

#include "passes/order/order_reports.h"

namespace piper::passes {

using namespace dag;

OrderClaims::OrderClaims(const Dag& dag, const ClaimedOrder& claimed, const WorkGraph& graph)
    : dag_(dag), claimed_(claimed), graph_(graph), units_(claimed.first_of_claim.size()) {
  std::vector<bool> follows(graph.units(), false);
  for (std::uint32_t claim = 0; claim < size(); ++claim) {
    std::vector<std::uint32_t>& own = units_[claim];
    for (const auto& [from, to] : edges(claim)) {
      own.push_back(from);
      own.push_back(to);
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (const std::uint32_t unit : own) follows[unit] = true;
  }
  // An order of one operation has no edges.
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
    if (graph.sort(unit) != WorkGraph::Sort::work ||
        !claimed.loc[graph.front(unit).index()].valid() || follows[unit])
      continue;
    for (std::uint32_t claim = 0; claim < size(); ++claim) {
      const bool holds = dag.device_sets[graph.devices(unit)].intersects(
          dag.device_sets[dag.claims[claim].devices]);
      if (holds && edges(claim).empty()) units_[claim].push_back(unit);
    }
  }
  // More units belong to a group, or to a rank whose order has errors by itself and is ignored.
  for (std::uint32_t claim = 0; claim < size(); ++claim) {
    if (edges(claim).empty() && units_[claim].size() > 1) units_[claim].clear();
  }
  for (std::vector<std::uint32_t>& own : units_) {
    std::stable_sort(own.begin(), own.end(), [&](std::uint32_t a, std::uint32_t b) {
      return claimed.text_position[graph.front(a).index()] <
             claimed.text_position[graph.front(b).index()];
    });
  }
}

std::uint32_t OrderClaims::of_edge(std::uint32_t from, std::uint32_t to) const {
  const Adjacency::Pair edge(from, to);
  for (std::uint32_t claim = 0; claim < size(); ++claim) {
    const auto edges = this->edges(claim), named = this->named(claim);
    if (std::find(edges.begin(), edges.end(), edge) != edges.end() ||
        std::find(named.begin(), named.end(), edge) != named.end())
      return claim;
  }
  return kNone;
}

NodeId OrderClaims::member(std::uint32_t unit, std::uint32_t claim) const {
  if (claim == kNone) return graph_.front(unit);
  const DeviceSet& devices = dag_.device_sets[dag_.claims[claim].devices];
  const auto members = graph_.members(unit);
  const auto own = std::find_if(members.begin(), members.end(), [&](NodeId member) {
    return dag_.device_sets[dag_.node(member).devices].intersects(devices);
  });
  return own == members.end() ? graph_.front(unit) : *own;
}

LocId OrderClaims::loc(std::uint32_t unit, std::uint32_t claim) const {
  const NodeId own = member(unit, claim);
  for (const ClaimedOrder::Again& again : claimed_.again) {
    if (again.claim == claim && again.node == own) return again.loc;
  }
  if (claimed_.loc[own.index()].valid()) return claimed_.loc[own.index()];
  for (const NodeId member : graph_.members(unit)) {
    if (claimed_.loc[member.index()].valid()) return claimed_.loc[member.index()];
  }
  return dag_.node(own).loc;
}

std::string OrderClaims::text(std::uint32_t unit, std::uint32_t claim) const {
  return work_text(dag_, member(unit, claim));
}

std::string OrderClaims::rank_text(std::uint32_t claim) const {
  const DeviceSet& devices = dag_.device_sets[dag_.claims[claim].devices];
  std::string text;
  for (std::size_t axis = 0; axis < devices.at.size(); ++axis) {
    if (devices.at[axis] == DeviceSet::kWhole) continue;
    text += (text.empty() ? "" : " ") + std::string(dag_.context->text(dag_.mesh.axes[axis].name)) +
            "[" + std::to_string(devices.at[axis]) + "]";
  }
  return text.empty() ? dag_.text(dag_.claims[claim].devices) : text;
}

}  // namespace piper::passes
