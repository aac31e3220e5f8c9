#include "passes/order_cycle.h"

#include <algorithm>
#include <string>

#include "passes/order_reports.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;
/// Edges looked at in the search for the shortest cycle; beyond it the shortest found so far is shown.
constexpr std::size_t kSearchBound = 20'000'000;

enum class Why : std::uint8_t { data, order };

class CycleSearch {
 public:
  CycleSearch(const WorkGraph& graph, const Adjacency& more, std::span<const std::uint32_t> done)
      : graph_(graph), more_(more), stuck_(graph.units(), true), came_from_(graph.units()), seen_(graph.units(), kNone) {
    for (const std::uint32_t unit : done) stuck_[unit] = false;
    drop_downstream();
  }

  /// The units of the shortest cycle, each before the one that waits for it.
  std::vector<std::uint32_t> shortest() {
    std::vector<std::uint32_t> best;
    for (std::uint32_t unit = 0; unit < graph_.units() && work_ < kSearchBound; ++unit) {
      if (!stuck_[unit] || more_.of(unit).empty()) continue;
      std::vector<std::uint32_t> found = through(unit, best.empty() ? graph_.units() + 1 : best.size());
      if (!found.empty()) best = std::move(found);
    }
    return best;
  }

 private:
  template <typename Visit>
  void for_each(std::uint32_t unit, Visit visit) {
    for (const std::uint32_t to : graph_.successors(unit)) visit(to);
    for (const std::uint32_t to : more_.of(unit)) visit(to);
  }

  /// What only waits for a cycle has no stuck successor in the end.
  void drop_downstream() {
    std::vector<std::uint32_t> out(graph_.units(), 0);
    std::vector<Adjacency::Pair> reverse;
    for (std::uint32_t unit = 0; unit < graph_.units(); ++unit) {
      if (!stuck_[unit]) continue;
      for_each(unit, [&](std::uint32_t to) {
        ++out[unit];
        reverse.emplace_back(to, unit);
      });
    }
    const Adjacency before(graph_.units(), reverse);
    std::vector<std::uint32_t> leaves;
    for (std::uint32_t unit = 0; unit < graph_.units(); ++unit) {
      if (stuck_[unit] && out[unit] == 0) leaves.push_back(unit);
    }
    while (!leaves.empty()) {
      const std::uint32_t unit = leaves.back();
      leaves.pop_back();
      stuck_[unit] = false;
      for (const std::uint32_t from : before.of(unit)) {
        if (--out[from] == 0) leaves.push_back(from);
      }
    }
  }

  /// The shortest cycle through `start` that has fewer than `bound` units, if there is one.
  std::vector<std::uint32_t> through(std::uint32_t start, std::size_t bound) {
    queue_.assign(1, start);
    depth_.assign(1, 1);
    seen_[start] = start;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::uint32_t unit = queue_[i];
      if (depth_[i] >= bound) return {};
      bool closed = false;
      for_each(unit, [&](std::uint32_t to) {
        ++work_;
        if (to == start) closed = true;
        if (!stuck_[to] || seen_[to] == start) return;
        seen_[to] = start;
        came_from_[to] = unit;
        queue_.push_back(to);
        depth_.push_back(depth_[i] + 1);
      });
      if (!closed) continue;
      std::vector<std::uint32_t> cycle;
      for (std::uint32_t at = unit; at != start; at = came_from_[at]) cycle.push_back(at);
      cycle.push_back(start);
      std::reverse(cycle.begin(), cycle.end());
      return cycle;
    }
    return {};
  }

  const WorkGraph& graph_;
  const Adjacency& more_;
  std::vector<bool> stuck_;
  std::vector<std::uint32_t> came_from_, seen_;
  std::vector<std::uint32_t> queue_;
  std::vector<std::size_t> depth_;
  std::size_t work_ = 0;
};

/// One edge of the story: `to` comes after `from`, because it needs what `from` makes or because an order says so.
struct Link {
  std::uint32_t from, to;
  Why why;
};

/// The cycle with runs of order edges and of data edges each as one link, communication left out; starts with an order link.
std::vector<Link> links_of(const Dag& dag, const WorkGraph& graph, const Adjacency& more, const std::vector<std::uint32_t>& cycle) {
  std::vector<Link> edges;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::uint32_t from = cycle[i], to = cycle[(i + 1) % cycle.size()];
    const auto ordered = more.of(from);
    const bool order = std::find(ordered.begin(), ordered.end(), to) != ordered.end();
    edges.push_back({from, to, order ? Why::order : Why::data});
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].why != Why::order || edges[(i + edges.size() - 1) % edges.size()].why != Why::data) continue;
    std::rotate(edges.begin(), edges.begin() + static_cast<std::ptrdiff_t>(i), edges.end());
    break;
  }
  std::vector<Link> links;
  for (const Link& edge : edges) {
    const bool through_comm = !links.empty() && links.back().why == Why::data && edge.why == Why::data &&
                              dag.node(graph.front(edge.from)).kind != NodeKind::chunk;
    const bool along_rank = !links.empty() && links.back().why == Why::order && edge.why == Why::order;
    if (through_comm || along_rank) {
      links.back().to = edge.to;
    } else {
      links.push_back(edge);
    }
  }
  return links;
}

}  // namespace

void report_order_cycle(const Dag& dag, const ClaimedOrder& claimed, const WorkGraph& graph, const Adjacency& more, std::span<const std::uint32_t> done,
                        DiagnosticSink& sink) {
  const std::vector<std::uint32_t> cycle = CycleSearch(graph, more, done).shortest();
  if (cycle.empty()) {  // the data flow alone has a cycle: ir/verify refuses such a DAG
    sink.report(Code::compiler_bug, LocId(), "the data flow has a cycle");
    return;
  }
  const std::vector<Link> links = links_of(dag, graph, more, cycle);
  const auto text = [&](std::uint32_t unit) { return work_text(dag, graph.front(unit)); };
  const auto loc = [&](std::uint32_t unit) {
    for (const NodeId member : graph.members(unit)) {
      if (claimed.loc[member.index()].valid()) return claimed.loc[member.index()];
    }
    return dag.node(graph.front(unit)).loc;
  };
  if (links.size() == 2 && links[0].why == Why::order && links[1].why == Why::data) {
    const std::uint32_t first = links[0].from, second = links[0].to;
    sink.report(Code::order_contradicts_data, loc(first), "`{}` waits for `{}`, which the order puts after it", text(first), text(second))
        .related(loc(second), "`{}` comes only here", text(second))
        .hint("put `{}` before `{}`", text(second), text(first));
    return;
  }
  if (links.size() == 1 && links[0].why == Why::order) {
    // Orders of several ranks alone: they hold replicas of the same operations.
    sink.report(Code::order_contradicts_data, loc(cycle[0]), "the orders of the ranks that run `{}` and `{}` disagree on which comes first", text(cycle[0]), text(cycle[1]))
        .related(loc(cycle[1]), "`{}` is here", text(cycle[1]))
        .hint("replicas run the same operations in one order: give all of them the same steps");
    return;
  }
  const std::uint32_t start = links.front().from;
  auto report = sink.report(Code::order_contradicts_data, loc(start), "`{}` waits for itself: the orders of the ranks and the data flow form a cycle", text(start));
  for (const Link& link : links) {
    if (link.why == Why::order) {
      report.related(loc(link.to), "the order puts `{}` after `{}`", text(link.to), text(link.from));
    } else {
      report.related(loc(link.to), "`{}` waits for `{}`", text(link.to), text(link.from));
    }
  }
  report.hint("on one of these ranks, swap the two operations");
}

}  // namespace piper::passes
