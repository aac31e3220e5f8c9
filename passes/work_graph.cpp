#include "passes/work_graph.h"

#include <algorithm>

#include "passes/select.h"
#include "passes/wiring.h"

namespace piper::passes {

using namespace dag;

Adjacency::Adjacency(std::size_t size, std::span<const Pair> pairs) : first_(size + 1, 0), targets_(pairs.size()) {
  for (const Pair& pair : pairs) ++first_[pair.first + 1];
  for (std::size_t i = 1; i <= size; ++i) first_[i] += first_[i - 1];
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Pair& pair : pairs) targets_[next[pair.first]++] = pair.second;
}

namespace {

/// The backward of an instance comes after its forward, also where it reads nothing of it (a chunk that only feeds the loss). On one device that is order
/// alone; between devices values carry it.
void add_forward_before_backward(const Dag& dag, std::vector<Adjacency::Pair>& units, const std::vector<std::uint32_t>& unit_of) {
  const Instances instances(dag);
  const std::size_t work = num_work_nodes(dag);
  const auto place = [&](const Node& node) { return std::size_t{node.chunk.index()} * instances.size() + instances.position(node.instance); };
  std::vector<NodeId> forward(dag.chunks.size() * instances.size());
  for (std::size_t i = 0; i < work; ++i) {
    const Node& node = dag.nodes[i];
    if (node.pass == Pass::F) forward[place(node)] = NodeId::at(i);
  }
  for (std::size_t i = 0; i < work; ++i) {
    const Node& node = dag.nodes[i];
    if (node.pass != Pass::B && node.pass != Pass::BI) continue;
    const NodeId before = forward[place(node)];
    if (before.valid() && dag.node(before).devices == node.devices) units.emplace_back(unit_of[before.index()], unit_of[i]);
  }
}

WorkGraph::Sort sort_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::chunk: return node.pass == Pass::B ? WorkGraph::Sort::whole_backward : WorkGraph::Sort::work;
    case NodeKind::load: return WorkGraph::Sort::load;
    case NodeKind::sum_squares:
    case NodeKind::norm:
    case NodeKind::update:
    case NodeKind::report: return WorkGraph::Sort::end_of_step;
    case NodeKind::count: return WorkGraph::Sort::count;
    case NodeKind::send:
    case NodeKind::recv:
    case NodeKind::all_reduce:
    case NodeKind::all_gather: break;
  }
  return WorkGraph::Sort::communication;
}

}  // namespace

void WorkGraph::number(const Dag& dag) {
  unit_of_.resize(dag.nodes.size());
  unit_of_comm_.resize(dag.comms.size());
  members_.reserve(dag.nodes.size());
  first_member_.reserve(dag.nodes.size() + 1);
  sort_.reserve(dag.nodes.size());
  devices_.reserve(dag.nodes.size());
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    const Node& node = dag.nodes[i];
    const NodeId id = NodeId::at(i);
    const std::uint32_t unit = static_cast<std::uint32_t>(first_member_.size());
    if (!node.comm.valid()) {
      unit_of_[i] = unit;
      first_member_.push_back(static_cast<std::uint32_t>(members_.size()));
      members_.push_back(id);
      sort_.push_back(sort_of(node));
      devices_.push_back(node.devices);
      continue;
    }
    const std::span<const NodeId> group = dag.comms[node.comm.index()].members;
    NodeId first = group.front();
    for (const NodeId member : group) first = std::min(first, member);
    if (first != id) continue;
    unit_of_comm_[node.comm.index()] = unit;
    sort_.push_back(sort_of(node));
    devices_.push_back(dag.node(group.front()).devices);
    first_member_.push_back(static_cast<std::uint32_t>(members_.size()));
    for (const NodeId member : group) {
      unit_of_[member.index()] = unit;
      members_.push_back(member);
    }
  }
  first_member_.push_back(static_cast<std::uint32_t>(members_.size()));
}

void WorkGraph::connect(const Dag& dag) {
  const std::size_t count = units();
  std::vector<Adjacency::Pair> pairs;
  pairs.reserve(dag.edges.size());
  indegree_.assign(count, 0);
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    const std::uint32_t to = unit_of_[i];
    for (const Input& input : dag.inputs_of(dag.nodes[i])) {
      if (input.cls == EdgeClass::param || !input.source.node.valid()) continue;
      pairs.emplace_back(unit_of_[input.source.node.index()], to);
    }
  }
  add_forward_before_backward(dag, pairs, unit_of_);
  for (const Adjacency::Pair& pair : pairs) ++indegree_[pair.second];
  successors_ = Adjacency(count, pairs);
}

namespace {

/// Kahn's algorithm. `State` has what is kept of a unit beside the edges that it still misses: `leave(from)` gives what its successors see, `arrive`
/// takes it.
template <typename State>
std::vector<std::uint32_t> take_in_order(const WorkGraph& graph, const Adjacency& more, std::vector<State>& states) {
  states.resize(graph.units());
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) states[unit].missing = graph.indegree()[unit];
  for (const std::uint32_t to : more.targets()) ++states[to].missing;
  std::vector<std::uint32_t> order;
  order.reserve(graph.units());
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
    if (states[unit].missing == 0) order.push_back(unit);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t unit = order[i];
    const auto left = states[unit].leave(graph, unit);
    const auto arrive = [&](std::uint32_t to) {
      State& state = states[to];
      state.arrive(left);
      if (--state.missing == 0) order.push_back(to);
    };
    for (const std::uint32_t to : graph.successors(unit)) arrive(to);
    for (const std::uint32_t to : more.of(unit)) arrive(to);
  }
  return order;
}

struct Untimed {
  std::uint32_t missing = 0;
  struct Nothing {};
  Nothing leave(const WorkGraph&, std::uint32_t) const { return {}; }
  void arrive(Nothing) {}
};

struct Timed {
  std::uint32_t missing = 0, start = 0;
  std::uint32_t leave(const WorkGraph& graph, std::uint32_t unit) const { return start + graph.duration(unit); }
  void arrive(std::uint32_t end) { start = std::max(start, end); }
};

}  // namespace

std::vector<std::uint32_t> topological_order(const WorkGraph& graph, const Adjacency& more) {
  std::vector<Untimed> states;
  return take_in_order(graph, more, states);
}

std::vector<std::uint32_t> topological_order(const WorkGraph& graph, const Adjacency& more, std::vector<std::uint32_t>& start) {
  std::vector<Timed> states;
  std::vector<std::uint32_t> order = take_in_order(graph, more, states);
  start.clear();
  start.reserve(states.size());
  for (const Timed& state : states) start.push_back(state.start);
  return order;
}

}  // namespace piper::passes
