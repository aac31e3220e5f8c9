#include "passes/order_cycle.h"

#include <algorithm>
#include <optional>
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

/// The orders of the claims, one by one.
class Claims {
 public:
  explicit Claims(const ClaimedOrder& claimed) : claimed_(claimed) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(claimed_.first_of_claim.size()); }
  std::span<const Adjacency::Pair> edges(std::uint32_t claim) const { return part(claimed_.edges, &ClaimedOrder::First::edge, claim); }

  /// The claim that puts `to` directly after `from`: of several `preferred`, or the first. kNone: no claim does.
  std::uint32_t of_edge(std::uint32_t from, std::uint32_t to, std::uint32_t preferred) const {
    const Adjacency::Pair edge(from, to);
    const auto has = [&](std::uint32_t claim) {
      const auto edges = this->edges(claim), named = part(claimed_.named, &ClaimedOrder::First::named, claim);
      return std::find(edges.begin(), edges.end(), edge) != edges.end() || std::find(named.begin(), named.end(), edge) != named.end();
    };
    if (preferred != kNone && has(preferred)) return preferred;
    for (std::uint32_t claim = 0; claim < size(); ++claim) {
      if (has(claim)) return claim;
    }
    return kNone;
  }

  /// The end of a message that runs on the devices of the claim, the only one that its order can name; other units have one end.
  NodeId member(const Dag& dag, const WorkGraph& graph, std::uint32_t unit, std::uint32_t claim) const {
    if (claim == kNone) return graph.front(unit);
    const DeviceSet& devices = dag.device_sets[dag.claims[claim].devices];
    const auto members = graph.members(unit);
    const auto own = std::find_if(members.begin(), members.end(), [&](NodeId member) { return dag.device_sets[dag.node(member).devices].intersects(devices); });
    return own == members.end() ? graph.front(unit) : *own;
  }

  /// The operation that names the work of a unit, in this claim if it does.
  LocId loc(const Dag& dag, const WorkGraph& graph, std::uint32_t unit, std::uint32_t claim) const {
    const NodeId own = member(dag, graph, unit, claim);
    for (const ClaimedOrder::Again& again : claimed_.again) {
      if (again.claim == claim && again.node == own) return again.loc;
    }
    if (claimed_.loc[own.index()].valid()) return claimed_.loc[own.index()];
    for (const NodeId member : graph.members(unit)) {
      if (claimed_.loc[member.index()].valid()) return claimed_.loc[member.index()];
    }
    return dag.node(own).loc;
  }

 private:
  std::span<const Adjacency::Pair> part(std::span<const Adjacency::Pair> all, std::uint32_t ClaimedOrder::First::*first, std::uint32_t claim) const {
    const std::size_t begin = claimed_.first_of_claim[claim].*first;
    const std::size_t end = claim + 1 < size() ? claimed_.first_of_claim[claim + 1].*first : all.size();
    return all.subspan(begin, end - begin);
  }

  const ClaimedOrder& claimed_;
};

/// One edge of the story: `to` comes after `from`, because it needs what `from` makes or because an order says so, that of `claim`.
struct Link {
  std::uint32_t from, to;
  Why why;
  std::uint32_t claim = kNone;
};

/// The cycle with runs of data edges and of the order edges of a claim each as one link, communication left out; starts with an order link.
std::vector<Link> links_of(const Dag& dag, const WorkGraph& graph, const Adjacency& more, const Claims& claims, const std::vector<std::uint32_t>& cycle) {
  std::vector<Link> edges;
  std::uint32_t claim = kNone;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::uint32_t from = cycle[i], to = cycle[(i + 1) % cycle.size()];
    const auto ordered = more.of(from);
    const bool order = std::find(ordered.begin(), ordered.end(), to) != ordered.end();
    if (order) claim = claims.of_edge(from, to, claim);
    edges.push_back({from, to, order ? Why::order : Why::data, order ? claim : kNone});
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Link& last = edges[(i + edges.size() - 1) % edges.size()];
    if (edges[i].why != Why::order || (last.why == Why::order && last.claim == edges[i].claim)) continue;
    std::rotate(edges.begin(), edges.begin() + static_cast<std::ptrdiff_t>(i), edges.end());
    break;
  }
  std::vector<Link> links;
  for (const Link& edge : edges) {
    const bool through_comm = !links.empty() && links.back().why == Why::data && edge.why == Why::data &&
                              dag.node(graph.front(edge.from)).kind != NodeKind::chunk;
    const bool along_rank = !links.empty() && links.back().why == Why::order && edge.why == Why::order && links.back().claim == edge.claim;
    if (through_comm || along_rank) {
      links.back().to = edge.to;
    } else {
      links.push_back(edge);
    }
  }
  return links;
}

/// Replicas of the same work whose orders alone make the cycle.
struct Disagreement {
  std::uint32_t before, after;  // units in the order of `claim`, and the other way around in that of `other`
  std::uint32_t claim, other;
};

/// Where every claim holds all of the cycle, one of them has some edge of it the other way around: otherwise each would have all of the cycle in order.
std::optional<Disagreement> disagreement(const WorkGraph& graph, const Claims& claims, const std::vector<std::uint32_t>& cycle) {
  std::vector<bool> reached;
  std::vector<std::uint32_t> queue;
  for (std::uint32_t other = 0; other < claims.size(); ++other) {
    const Adjacency order(graph.units(), claims.edges(other));
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const std::uint32_t before = cycle[i], after = cycle[(i + 1) % cycle.size()];
      reached.assign(graph.units(), false);
      queue.assign(1, after);
      for (std::size_t k = 0; k < queue.size() && !reached[before]; ++k) {
        for (const std::uint32_t to : order.of(queue[k])) {
          if (!reached[to]) queue.push_back(to);
          reached[to] = true;
        }
      }
      if (reached[before]) return Disagreement{before, after, claims.of_edge(before, after, kNone), other};
    }
  }
  return std::nullopt;
}

void report_disagreement(const Dag& dag, const Claims& claims, const WorkGraph& graph, const Disagreement& found, DiagnosticSink& sink) {
  const std::string before = work_text(dag, claims.member(dag, graph, found.before, found.claim));
  const std::string after = work_text(dag, claims.member(dag, graph, found.after, found.claim));
  const LocId loc = claims.loc(dag, graph, found.after, found.claim), other = claims.loc(dag, graph, found.after, found.other);
  auto report = sink.report(Code::order_contradicts_data, loc, "`{}` comes after `{}` in the order of `{}`, and before it in the order of `{}`", after, before,
                            dag.text(dag.claims[found.claim].devices), dag.text(dag.claims[found.other].devices));
  if (other != loc) report.related(other, "here it comes before");
  report.hint("replicas run the same operations in one order: give all of them the same steps");
}

}  // namespace

void report_order_cycle(const Dag& dag, const ClaimedOrder& claimed, const WorkGraph& graph, const Adjacency& more, std::span<const std::uint32_t> done,
                        DiagnosticSink& sink) {
  const std::vector<std::uint32_t> cycle = CycleSearch(graph, more, done).shortest();
  if (cycle.empty()) {  // the data flow alone has a cycle: ir/verify refuses such a DAG
    sink.report(Code::compiler_bug, LocId(), "the data flow has a cycle");
    return;
  }
  const Claims claims(claimed);
  const std::vector<Link> links = links_of(dag, graph, more, claims, cycle);
  const auto text = [&](std::uint32_t unit, std::uint32_t claim) { return work_text(dag, claims.member(dag, graph, unit, claim)); };
  const auto loc = [&](std::uint32_t unit, std::uint32_t claim) { return claims.loc(dag, graph, unit, claim); };
  if (links.size() == 2 && links[0].why == Why::order && links[1].why == Why::data) {
    const std::uint32_t first = links[0].from, second = links[0].to;
    const std::uint32_t claim = links[0].claim;
    sink.report(Code::order_contradicts_data, loc(first, claim), "`{}` waits for `{}`, which the order puts after it", text(first, claim), text(second, claim))
        .related(loc(second, claim), "`{}` comes only here", text(second, claim))
        .hint("put `{}` before `{}`", text(second, claim), text(first, claim));
    return;
  }
  const bool of_orders = std::all_of(links.begin(), links.end(), [](const Link& link) { return link.why == Why::order; });
  if (const auto found = of_orders ? disagreement(graph, claims, cycle) : std::nullopt) {
    report_disagreement(dag, claims, graph, *found, sink);
    return;
  }
  const std::uint32_t start = links.front().from, first_claim = links.front().claim;
  auto report = sink.report(Code::order_contradicts_data, loc(start, first_claim), "`{}` waits for itself: the orders of the ranks and the data flow form a cycle",
                            text(start, first_claim));
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    if (link.why == Why::order) {
      report.related(loc(link.to, link.claim), "the order puts `{}` after `{}`", text(link.to, link.claim), text(link.from, link.claim));
    } else {  // between two orders: each end as the order beside it has it
      const std::uint32_t before = links[(i + links.size() - 1) % links.size()].claim, after = links[(i + 1) % links.size()].claim;
      report.related(loc(link.to, after), "`{}` waits for `{}`", text(link.to, after), text(link.from, before));
    }
  }
  report.hint("on one of these ranks, swap the two operations");
}

}  // namespace piper::passes
