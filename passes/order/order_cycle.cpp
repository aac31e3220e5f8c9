#include "passes/order/order_cycle.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "passes/order/order_deadlock.h"
#include "passes/order/order_moves.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;
/// Maximum number of edges visited in the search for the shortest cycle; then the shortest found so
/// far is shown.
constexpr std::size_t kSearchBound = 20'000'000;
/// Maximum number of reported ranks of a cycle.
constexpr std::size_t kMaxRanks = 8;

class CycleSearch {
 public:
  CycleSearch(const WorkGraph& graph, const Adjacency& more, std::span<const std::uint32_t> done)
      : graph_(graph),
        more_(more),
        stuck_(graph.units(), true),
        came_from_(graph.units()),
        seen_(graph.units(), kNone) {
    for (const std::uint32_t unit : done) stuck_[unit] = false;
    drop_downstream();
  }

  /// The units of the shortest cycle, each before the one that waits for it.
  std::vector<std::uint32_t> shortest() {
    std::vector<std::uint32_t> best;
    for (std::uint32_t unit = 0; unit < graph_.units() && work_ < kSearchBound; ++unit) {
      if (!stuck_[unit] || more_.of(unit).empty()) continue;
      std::vector<std::uint32_t> found =
          through(unit, best.empty() ? graph_.units() + 1 : best.size());
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

  /// Repeatedly drops units without a stuck successor: they only wait for a cycle.
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

/// A cycle made only by the orders of replicas of the same work.
struct Disagreement {
  std::uint32_t before, after;  // units in the order of `claim`, reversed in that of `other`
  std::uint32_t claim, other;
};

/// If every claim contains the whole cycle, one of them reverses some edge: otherwise one order
/// would contain the cycle.
std::optional<Disagreement> disagreement(const WorkGraph& graph, const OrderClaims& claims,
                                         const std::vector<std::uint32_t>& cycle) {
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
      if (reached[before]) return Disagreement{before, after, claims.of_edge(before, after), other};
    }
  }
  return std::nullopt;
}

void report_disagreement(const OrderClaims& claims, const Disagreement& found,
                         DiagnosticSink& sink) {
  const std::string before = claims.text(found.before, found.claim),
                    after = claims.text(found.after, found.claim);
  const LocId loc = claims.loc(found.after, found.claim),
              other = claims.loc(found.after, found.other);
  auto report =
      sink.report(Code::order_contradicts_data, loc,
                  "`{}` comes after `{}` in the order of `{}`, and before it in the order of `{}`",
                  after, before, claims.rank_text(found.claim), claims.rank_text(found.other));
  if (other != loc) report.related(other, "here it comes before");
  report.hint("replicas run the same operations in one order: give all of them the same steps");
}

/// `pp[0]`, `pp[1]` and `pp[2]`.
std::string rank_list(const OrderClaims& claims, std::span<const Standing> cycle) {
  std::string text;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (i == kMaxRanks - 1 && cycle.size() > kMaxRanks)
      return text + " and " + std::to_string(cycle.size() - i) + " more ranks";
    text += (i == 0                  ? "`"
             : i + 1 == cycle.size() ? " and `"
                                     : ", `") +
            claims.rank_text(cycle[i].claim) + "`";
  }
  return text;
}

void report_deadlock(const Dag& dag, const OrderClaims& claims, const WorkGraph& graph,
                     const Adjacency& more, std::span<const Standing> cycle, DiagnosticSink& sink) {
  const Standing& first = cycle.front();
  const LocId loc = claims.loc(first.at, first.claim);
  const std::string at = claims.text(first.at, first.claim),
                    want = claims.text(first.want, first.claim);
  const auto code = Code::order_contradicts_data;
  auto report =
      cycle.size() > 1
          ? sink.report(code, loc, "{} wait for each other", rank_list(claims, cycle))
          : sink.report(code, loc, "`{}` waits for `{}`, which the order of `{}` puts after it", at,
                        want, claims.rank_text(first.claim));
  if (cycle.size() == 1) {
    report.related(claims.loc(first.want, first.claim), "`{}` comes only here", want);
  } else {
    // One line per rank; a location is shown only once.
    const LocationTable& locations = sink.locations();
    std::set<std::pair<FileId, std::uint32_t>> shown;
    const auto fresh = [&](LocId at) {
      const SourceRange range = locations.primary(at);
      return range.valid() &&
             shown.emplace(range.file, locations.files().line_column(range.file, range.begin).line)
                 .second;
    };
    fresh(loc);
    for (std::size_t i = 0; i < std::min(cycle.size(), kMaxRanks); ++i) {
      const Standing& rank = cycle[i];
      const std::uint32_t owner = cycle[(i + 1) % cycle.size()].claim;
      const LocId place = claims.loc(rank.at, rank.claim);
      report.related(fresh(place) ? place : LocId(), "`{}` is at `{}` and waits for `{}` of `{}`",
                     claims.rank_text(rank.claim), claims.text(rank.at, rank.claim),
                     claims.text(rank.want, owner), claims.rank_text(owner));
    }
    if (cycle.size() > kMaxRanks)
      report.related(LocId(), "and so on, around {} ranks", cycle.size());
  }
  report.related(LocId(), "the grid up to there; in brackets what each rank is at:");
  for (const std::string& line : standing_grid(dag, claims, graph, more, cycle))
    report.related(LocId(), "  {}", line);
  if (const std::optional<std::string> change = legal_change(dag, claims, graph, cycle)) {
    report.hint("{}", *change);
  } else {
    report.hint(
        "no move of a single operation was found to be enough: give one of these ranks an order in which what the others wait for comes first");
  }
}

}  // namespace

void report_order_cycle(const Dag& dag, const ClaimedOrder& claimed, const WorkGraph& graph,
                        const Adjacency& more, std::span<const std::uint32_t> done,
                        DiagnosticSink& sink) {
  const OrderClaims claims(dag, claimed, graph);
  const std::vector<std::uint32_t> cycle = CycleSearch(graph, more, done).shortest();
  bool of_orders = true;
  for (std::size_t i = 0; i < cycle.size() && of_orders; ++i) {
    const auto ordered = more.of(cycle[i]);
    of_orders =
        std::find(ordered.begin(), ordered.end(), cycle[(i + 1) % cycle.size()]) != ordered.end();
  }
  if (const auto found = of_orders ? disagreement(graph, claims, cycle) : std::nullopt) {
    report_disagreement(claims, *found, sink);
    return;
  }
  report_deadlock(dag, claims, graph, more, deadlock_cycle(claims, graph, done), sink);
}

}  // namespace piper::passes
