#include "passes/linearise.h"

#include <algorithm>

#include "passes/list_schedule.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

/// Message numbers and windows of pair communicators.
void add_message_edges(const WorkGraph& graph, const Communicators& communicators, std::vector<Adjacency::Pair>& edges) {
  for (const Communicator& communicator : communicators.list) {
    if (communicator.kind != Communicator::Kind::pair) continue;
    std::uint32_t before = kNone;
    for (std::size_t j = 0; j < communicator.comms.size(); ++j) {
      const std::uint32_t unit = graph.unit_of(communicator.comms[j]);
      if (before != kNone) edges.emplace_back(before, unit);
      before = unit;
      if (j < communicator.window) continue;
      const NodeId reader = communicators.first_reader[communicator.comms[j - communicator.window].index()];
      if (reader.valid()) edges.emplace_back(graph.unit_of(reader), unit);
    }
  }
}

/// The last chunk of every role before what ends its step.
void add_end_edges(const WorkGraph& graph, const RoleTable& roles, std::span<const NodeId> compute, std::vector<Adjacency::Pair>& edges) {
  std::vector<std::uint32_t> last(roles.size(), kNone);
  for (const NodeId node : compute) {
    const std::uint32_t unit = graph.unit_of(node);
    for (const std::uint32_t role : roles.roles_of(graph.devices(unit))) last[role] = unit;
  }
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
    if (graph.sort(unit) != WorkGraph::Sort::end_of_step) continue;
    for (const std::uint32_t role : roles.roles_of(graph.devices(unit))) {
      if (last[role] != kNone) edges.emplace_back(last[role], unit);
    }
  }
}

void number_collectives(const Dag& dag, std::span<const std::uint32_t> position, Communicators& communicators) {
  const auto at = [&](CommId comm) { return position[dag.comms[comm.index()].members.front().index()]; };
  for (Communicator& communicator : communicators.list) {
    if (communicator.kind != Communicator::Kind::group) continue;
    std::sort(communicator.comms.begin(), communicator.comms.end(), [&](CommId a, CommId b) { return at(a) < at(b); });
    communicator.loc = dag.comms[communicator.comms.front().index()].loc;
    for (std::uint32_t i = 0; i < communicator.comms.size(); ++i) communicators.number[communicator.comms[i].index()] = i;
  }
}

}  // namespace

std::vector<Adjacency::Pair> chains(const WorkGraph& graph, const RoleTable& roles, std::span<const NodeId> compute) {
  std::vector<Adjacency::Pair> edges;
  edges.reserve(compute.size());
  std::vector<std::uint32_t> last(roles.size(), kNone);
  for (const NodeId node : compute) {
    const std::uint32_t unit = graph.unit_of(node);
    std::uint32_t added = kNone;  // roles of one set mostly have the same work before
    for (const std::uint32_t role : roles.roles_of(graph.devices(unit))) {
      if (last[role] != kNone && last[role] != added) edges.emplace_back(last[role], unit);
      added = last[role];
      last[role] = unit;
    }
  }
  return edges;
}

bool linearise(Dag& dag, const WorkGraph& graph, const RoleTable& roles, Communicators& communicators, std::span<const NodeId> compute,
               std::span<const Adjacency::Pair> after, std::span<const Adjacency::Pair> named) {
  std::vector<Adjacency::Pair> edges;
  edges.reserve(after.size() + named.size() + 2 * dag.comms.size() + dag.nodes.size() / 8);
  edges.assign(after.begin(), after.end());
  dag.temporal.clear();
  dag.temporal.reserve(edges.size());
  for (const Adjacency::Pair& edge : edges) dag.temporal.emplace_back(graph.front(edge.first), graph.front(edge.second));
  edges.insert(edges.end(), named.begin(), named.end());
  add_message_edges(graph, communicators, edges);
  add_end_edges(graph, roles, compute, edges);
  const Adjacency more(graph.units(), edges);
  // What ends the step counts as one unit of time, so that order by time is order by dependence there, too.
  std::vector<std::uint32_t> start;
  const std::vector<std::uint32_t> topological = topological_order(graph, more, start);
  if (topological.size() < graph.units()) return false;
  std::uint32_t end_of_step = 0;
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) end_of_step = std::max(end_of_step, start[unit] + graph.duration(unit));

  // At one time: communication, then loads, then work.
  std::vector<std::uint32_t> key(graph.units());
  for (const std::uint32_t unit : topological) {
    const WorkGraph::Sort sort = graph.sort(unit);
    key[unit] = 3 * start[unit] + (sort == WorkGraph::Sort::communication ? 0 : sort == WorkGraph::Sort::load ? 1 : 2);
    if (sort != WorkGraph::Sort::load || graph.successors(unit).empty()) continue;
    key[unit] = 3 * end_of_step + 2;
    for (const std::uint32_t to : graph.successors(unit)) {
      key[unit] = std::min(key[unit], 3 * start[to] + (graph.sort(to) == WorkGraph::Sort::communication ? 0 : 1));
    }
  }
  // A stable counting sort keeps the topological order within equal keys.
  std::vector<std::uint32_t> first(3 * static_cast<std::size_t>(end_of_step) + 4, 0);
  for (const std::uint32_t unit : topological) ++first[key[unit] + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> sorted(graph.units());
  for (const std::uint32_t unit : topological) sorted[first[key[unit]]++] = unit;

  dag.order.clear();
  dag.order.reserve(dag.nodes.size());
  for (const std::uint32_t unit : sorted) {
    for (const NodeId member : graph.members(unit)) dag.order.push_back(member);
  }
  std::vector<std::uint32_t> position(dag.nodes.size());
  for (std::uint32_t i = 0; i < dag.order.size(); ++i) position[dag.order[i].index()] = i;
  number_collectives(dag, position, communicators);
  const auto earlier = [&](const Input& a, const Input& b) {
    const std::uint32_t x = position[a.source.node.index()], y = position[b.source.node.index()];
    return x != y ? x < y : a.source.index < b.source.index;
  };
  for (const Node& node : dag.nodes) {
    // Several sources have the ports of sums alone.
    if (node.kind != NodeKind::all_reduce && node.kind != NodeKind::update && node.kind != NodeKind::sum_squares) continue;
    const auto begin = dag.edges.begin() + node.first_input;
    for (std::uint32_t i = 0; i < node.num_inputs;) {
      std::uint32_t next = i + 1;
      while (next < node.num_inputs && begin[next].port == begin[i].port) ++next;
      if (!std::is_sorted(begin + i, begin + next, earlier)) std::sort(begin + i, begin + next, earlier);
      i = next;
    }
  }
  return true;
}

}  // namespace piper::passes
