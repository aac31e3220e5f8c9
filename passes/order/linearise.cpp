#include "passes/order/linearise.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "passes/order/list_schedule.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

/// Message numbers and windows of pair communicators.
void add_message_edges(const WorkGraph& graph, const Communicators& communicators,
                       std::vector<Adjacency::Pair>& edges) {
  for (const Communicator& communicator : communicators.list) {
    if (communicator.kind != Communicator::Kind::pair) continue;
    std::uint32_t before = kNone;
    for (std::size_t j = 0; j < communicator.comms.size(); ++j) {
      const std::uint32_t unit = graph.unit_of(communicator.comms[j]);
      if (before != kNone) edges.emplace_back(before, unit);
      before = unit;
      if (j < communicator.window) continue;
      const NodeId reader =
          communicators.first_reader[communicator.comms[j - communicator.window].index()];
      if (reader.valid()) edges.emplace_back(graph.unit_of(reader), unit);
    }
  }
}

/// Edges from the last chunk of every role to the units that end its step.
void add_end_edges(const WorkGraph& graph, const RoleTable& roles, std::span<const NodeId> compute,
                   std::vector<Adjacency::Pair>& edges) {
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

/// Fills `dag.order` by the start times of units; at equal times communication, then loads, then
/// work. `topological` breaks ties.
void place_by_time(Dag& dag, const WorkGraph& graph, std::span<const std::uint32_t> topological,
                   std::span<const std::uint32_t> start) {
  using Sort = WorkGraph::Sort;
  std::uint32_t end_of_step = 0;
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit)
    end_of_step = std::max(end_of_step, start[unit] + graph.duration(unit));
  std::vector<std::uint32_t> key(graph.units());
  // A counting sort, which is stable; a unit takes as many places as it has nodes.
  std::vector<std::uint32_t> next(3 * static_cast<std::size_t>(end_of_step) + 4, 0);
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
    const Sort sort = graph.sort(unit);
    key[unit] = 3 * start[unit] + (sort == Sort::communication ? 0 : sort == Sort::load ? 1 : 2);
    if (sort == Sort::load && !graph.successors(unit).empty()) {
      key[unit] = 3 * end_of_step + 2;
      for (const std::uint32_t to : graph.successors(unit))
        key[unit] =
            std::min(key[unit], 3 * start[to] + (graph.sort(to) == Sort::communication ? 0 : 1));
    }
    next[key[unit] + 1] += static_cast<std::uint32_t>(graph.members(unit).size());
  }
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  dag.order.resize(next.back());
  NodePolls polls(dag.context->cancellation);
  for (const std::uint32_t unit : topological) {
    polls.visit();
    std::uint32_t& at = next[key[unit]];
    for (const NodeId member : graph.members(unit)) dag.order[at++] = member;
  }
}

/// Sorts its terms in the order in which they are made.
void sort_terms(Dag& dag, const Node& sum, std::span<const std::uint32_t> position) {
  const auto earlier = [&](const Input& a, const Input& b) {
    const std::uint32_t x = position[a.source.node.index()], y = position[b.source.node.index()];
    return a.port != b.port ? a.port < b.port : x != y ? x < y : a.source.index < b.source.index;
  };
  const auto begin = dag.edges.begin() + sum.first_input, end = begin + sum.num_inputs;
  if (!std::is_sorted(begin, end, earlier)) std::sort(begin, end, earlier);
}

}  // namespace

std::vector<Adjacency::Pair> chains(const WorkGraph& graph, const RoleTable& roles,
                                    std::span<const NodeId> compute) {
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

bool linearise(Dag& dag, const WorkGraph& graph, const RoleTable& roles,
               const Communicators& communicators, std::span<const NodeId> compute,
               std::span<const Adjacency::Pair> after, std::span<const Adjacency::Pair> named) {
  std::vector<Adjacency::Pair> edges;
  edges.reserve(after.size() + named.size() + 2 * dag.comms.size() + dag.nodes.size() / 8);
  edges.assign(after.begin(), after.end());
  // Named sends that follow each other are ordered by their numbers, if they share a communicator.
  std::copy_if(
      named.begin(), named.end(), std::back_inserter(edges),
      [&](const Adjacency::Pair& edge) { return graph.sort(edge.first) == WorkGraph::Sort::work; });
  add_message_edges(graph, communicators, edges);
  add_end_edges(graph, roles, compute, edges);
  // Units that end the step take one unit of time, so that their order by time is topological too.
  std::vector<std::uint32_t> start;
  const std::vector<std::uint32_t> topological =
      topological_order(graph, Adjacency(graph.units(), edges), start);
  if (topological.size() < graph.units()) return false;
  place_by_time(dag, graph, topological, start);
  place_sums(dag);
  return true;
}

void place_sums(Dag& dag) {
  std::vector<NodeId> sums;
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    if (adds_in_place(dag.nodes[n].kind)) sums.push_back(NodeId::at(n));
  }
  if (sums.empty()) return;
  std::erase_if(dag.order, [&](NodeId id) { return adds_in_place(dag.node(id).kind); });
  std::vector<std::uint32_t> position(dag.nodes.size());
  for (std::uint32_t i = 0; i < dag.order.size(); ++i) position[dag.order[i].index()] = i;
  // The place of the last term, whose node makes no other term of the bucket.
  std::vector<std::tuple<std::uint32_t, BucketId, NodeId>> behind;
  for (const NodeId id : sums) {
    const Node& sum = dag.node(id);
    sort_terms(dag, sum, position);
    std::uint32_t last = 0;
    for (const Input& term : dag.inputs_of(sum))
      last = std::max(last, position[term.source.node.index()]);
    behind.emplace_back(last, sum.subject.bucket(), id);
  }
  std::sort(behind.begin(), behind.end());
  std::vector<NodeId> order;
  order.reserve(dag.nodes.size());
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < dag.order.size(); ++i) {
    order.push_back(dag.order[i]);
    for (; next < behind.size() && std::get<0>(behind[next]) == i; ++next)
      order.push_back(std::get<2>(behind[next]));
  }
  dag.order = std::move(order);
}

}  // namespace piper::passes
