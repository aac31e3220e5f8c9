#include "passes/order/work_graph.h"

#include <algorithm>

#include "ir/dag/terms.h"
#include "passes/order/take_in_order.h"
#include "passes/selectors/select.h"

namespace piper::passes {

using namespace dag;

Adjacency::Adjacency(std::size_t size, std::span<const Pair> pairs)
    : first_(size + 1, 0), targets_(pairs.size()) {
  for (const Pair& pair : pairs) ++first_[pair.first + 1];
  for (std::size_t i = 1; i <= size; ++i) first_[i] += first_[i - 1];
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Pair& pair : pairs) targets_[next[pair.first]++] = pair.second;
}

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

/// For each chunk, the chunks whose values its forward reads, which is the same for all instances.
/// A message has the chunk that made it.
std::vector<std::vector<ChunkId>> forward_sources(const Dag& dag, const WorkTable& work) {
  std::vector<std::vector<ChunkId>> sources(dag.chunks.size());
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    const NodeId forward = work.of(ChunkId::at(c), Pass::F).front();
    if (!forward.valid()) continue;
    std::vector<ChunkId>& own = sources[c];
    for (const Input& input : dag.inputs_of(dag.node(forward))) {
      if (input.cls != EdgeClass::data || !input.source.node.valid()) continue;
      const Node* source = &dag.node(input.source.node);
      if (is_recv(source->kind)) {
        for (const NodeId member : dag.comms[source->comm.index()].members) {
          if (is_send(dag.node(member).kind)) source = &dag.node(member);
        }
      }
      if (runs_body(source->kind) || is_send(source->kind)) own.push_back(source->chunk);
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
  return sources;
}

/// The order of the passes, also without a value between them, so that the legality of a schedule
/// does not depend on which gradients are empty. The backward of an instance comes after its
/// forward, its `BW` after its `BI`, and backwards are in the reverse order of forwards. An edge
/// without a value only orders; nothing is sent for it.
void add_order_of_passes(const Dag& dag, std::vector<Adjacency::Pair>& units,
                         const std::vector<std::uint32_t>& unit_of) {
  const WorkTable work(dag);
  const std::size_t instances = Instances(dag).size();
  const auto add = [&](NodeId before, NodeId after) {
    if (before.valid() && after.valid())
      units.emplace_back(unit_of[before.index()], unit_of[after.index()]);
  };
  const auto backward = [&](ChunkId chunk, std::size_t instance) {
    const NodeId whole = work.of(chunk, Pass::B)[instance];
    return whole.valid() ? whole : work.of(chunk, Pass::BI)[instance];
  };
  const std::vector<std::vector<ChunkId>> sources = forward_sources(dag, work);
  for (std::size_t c = 0; c < sources.size(); ++c) {
    const ChunkId chunk = ChunkId::at(c);
    for (std::size_t i = 0; i < instances; ++i) {
      const NodeId own = backward(chunk, i);
      const NodeId again = work.of(chunk, Pass::R)[i];
      add(work.of(chunk, Pass::F)[i], again.valid() ? again : own);
      add(again, own);
      add(work.of(chunk, Pass::BI)[i], work.of(chunk, Pass::BW)[i]);
      for (const ChunkId source : sources[c]) add(own, backward(source, i));
    }
  }
}

WorkGraph::Sort sort_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::chunk:
      return node.pass == Pass::B ? WorkGraph::Sort::whole_backward : WorkGraph::Sort::work;
    case NodeKind::load: return WorkGraph::Sort::load;
    case NodeKind::sum_squares:
    case NodeKind::norm:
    case NodeKind::update:
    case NodeKind::report: return WorkGraph::Sort::end_of_step;
    case NodeKind::count: return WorkGraph::Sort::count;
    case NodeKind::accumulate:
    case NodeKind::send:
    case NodeKind::recv:
    case NodeKind::all_reduce:
    case NodeKind::reduce_scatter:
    case NodeKind::all_gather:
    case NodeKind::offload:
    case NodeKind::fetch:
    case NodeKind::all_gather_v: break;
  }
  return WorkGraph::Sort::communication;
}

}  // namespace

void WorkGraph::number(const Dag& dag) {
  unit_of_.assign(dag.nodes.size(), kNone);
  unit_of_comm_.resize(dag.comms.size());
  members_.reserve(dag.nodes.size());
  first_member_.reserve(dag.nodes.size() + 1);
  sort_.reserve(dag.nodes.size());
  devices_.reserve(dag.nodes.size());
  NodePolls polls(dag.context->cancellation);
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    polls.visit();
    const Node& node = dag.nodes[i];
    if (adds_in_place(node.kind)) continue;
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
  NodePolls polls(dag.context->cancellation);
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) {
    polls.visit();
    const std::uint32_t to = unit_of_[i];
    if (to == kNone) continue;
    for (const Input& input : dag.inputs_of(dag.nodes[i])) {
      if (input.cls == EdgeClass::param || !input.source.node.valid()) continue;
      const std::uint32_t from = unit_of_[input.source.node.index()];
      if (from != kNone) {
        pairs.emplace_back(from, to);
        continue;
      }
      for_each_term(dag, input.source,
                    [&](Port term) { pairs.emplace_back(unit_of_[term.node.index()], to); });
    }
  }
  add_order_of_passes(dag, pairs, unit_of_);
  for (const Adjacency::Pair& pair : pairs) ++indegree_[pair.second];
  successors_ = Adjacency(count, pairs);
}

namespace {

struct Untimed {
  std::uint32_t missing = 0;
  struct Nothing {};
  Nothing leave(const WorkGraph&, std::uint32_t) const { return {}; }
  void arrive(const WorkGraph&, Nothing, std::uint32_t) {}
};

struct Timed {
  std::uint32_t missing = 0, start = 0;
  std::uint32_t leave(const WorkGraph& graph, std::uint32_t unit) const {
    return start + graph.duration(unit);
  }
  void arrive(const WorkGraph&, std::uint32_t end, std::uint32_t) { start = std::max(start, end); }
};

template <typename State>
std::vector<std::uint32_t> take_units(const WorkGraph& graph, const Adjacency& more,
                                      std::vector<State>& states) {
  for (std::uint32_t unit = 0; unit < graph.units(); ++unit)
    states[unit].missing = graph.indegree()[unit];
  for (const std::uint32_t to : more.targets()) ++states[to].missing;
  return take_in_order(graph, states, [&](std::uint32_t unit, const auto& to) {
    for (const std::uint32_t next : graph.successors(unit)) to(next, 0);
    for (const std::uint32_t next : more.of(unit)) to(next, 0);
  });
}

}  // namespace

std::vector<std::uint32_t> topological_order(const WorkGraph& graph, const Adjacency& more) {
  std::vector<Untimed> states(graph.units());
  return take_units(graph, more, states);
}

std::vector<std::uint32_t> topological_order(const WorkGraph& graph, const Adjacency& more,
                                             std::vector<std::uint32_t>& start) {
  std::vector<Timed> states(graph.units());
  std::vector<std::uint32_t> order = take_units(graph, more, states);
  start.clear();
  start.reserve(states.size());
  for (const Timed& state : states) start.push_back(state.start);
  return order;
}

}  // namespace piper::passes
