#include "passes/order/order_deadlock.h"

#include <algorithm>
#include <map>
#include <utility>

#include "passes/order/grid_line.h"
#include "passes/selectors/select.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = OrderClaims::kNone;
/// The size of the grid: the last kColumns units of time, and the first kRows ranks.
constexpr std::uint32_t kColumns = 12;
constexpr std::size_t kRows = 8;

/// The places at which ranks are stuck, and their waits for each other.
class Deadlock {
 public:
  Deadlock(const OrderClaims& claims, const WorkGraph& graph, std::span<const std::uint32_t> done)
      : claims_(claims),
        graph_(graph),
        stuck_(graph.units(), true),
        owners_(graph.units()),
        steps_(graph.units()),
        seen_(graph.units(), kNone) {
    for (const std::uint32_t unit : done) stuck_[unit] = false;
    std::vector<Adjacency::Pair> needs;
    for (std::uint32_t unit = 0; unit < graph.units(); ++unit) {
      for (const std::uint32_t to : graph.successors(unit)) {
        if (stuck_[unit]) needs.emplace_back(to, unit);
      }
    }
    needs_ = Adjacency(graph.units(), needs);
    for (std::uint32_t claim = 0; claim < claims.size(); ++claim) {
      for (const std::uint32_t unit : claims.units(claim)) owners_[unit].push_back(claim);
      for (const auto& [before, unit] : claims.edges(claim)) {
        if (stuck_[before]) steps_[unit].push_back({claim, before});
      }
      for (const auto& [before, unit] : claims.named(claim)) {
        if (!stuck_[before]) continue;
        steps_[unit].push_back({claim, before});
        owners_[unit].push_back(claim);
      }
      for (const auto& [communication, work] : claims.late(claim)) {
        steps_[work].push_back({claim, communication});
        owners_[communication].push_back(claim);
      }
    }
    for (std::uint32_t claim = 0; claim < claims.size(); ++claim) {
      const std::vector<std::uint32_t>& own = claims.units(claim);
      const auto first =
          std::find_if(own.begin(), own.end(), [&](std::uint32_t unit) { return stuck_[unit]; });
      if (first != own.end()) place_before(claim, *first);
      for (const auto& [before, unit] : claims.named(claim)) {
        if (stuck_[before]) place_before(claim, unit);
      }
    }
    for (std::size_t place = 0; place < places_.size(); ++place) find_wishes(places_[place]);
  }

  std::vector<Standing> cycle() const {
    std::vector<Standing> best;
    for (std::uint32_t start = 0; start < places_.size() && best.size() != 1; ++start) {
      std::vector<Standing> found = through(start, best.size());
      if (!found.empty()) best = std::move(found);
    }
    return best;
  }

 private:
  /// A step of a claim's order.
  struct Step {
    std::uint32_t claim, unit;
    friend auto operator<=>(const Step&, const Step&) = default;
  };
  struct Wish {
    std::uint32_t want, place;
  };

  /// The place at which the rank is stuck before it reaches a unit of its order.
  std::uint32_t place_before(std::uint32_t claim, std::uint32_t unit) {
    const auto step = [&](std::uint32_t at) {
      return std::find_if(steps_[at].begin(), steps_[at].end(),
                          [&](const Step& each) { return each.claim == claim; });
    };
    while (step(unit) != steps_[unit].end()) unit = step(unit)->unit;
    const auto [found, added] =
        number_.try_emplace(Step{claim, unit}, static_cast<std::uint32_t>(places_.size()));
    if (added) places_.push_back({claim, unit});
    return found->second;
  }

  /// Finds the claimed units that the unit of a place waits for, through communication and work
  /// without an order.
  void find_wishes(Step place) {
    const auto number = static_cast<std::uint32_t>(wishes_.size());
    wishes_.emplace_back();
    const auto wish = [&](std::uint32_t want, std::uint32_t claim) {
      const std::uint32_t other = place_before(claim, want);
      wishes_[number].push_back({want, other});
    };
    // Replicas whose orders differ.
    for (const Step& step : steps_[place.unit]) wish(step.unit, step.claim);
    std::vector<std::uint32_t> queue{place.unit};
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const std::uint32_t need : needs_.of(queue[i])) {
        if (std::exchange(seen_[need], number) == number) continue;
        for (const std::uint32_t claim : owners_[need]) wish(need, claim);
        if (owners_[need].empty() || graph_.sort(need) != WorkGraph::Sort::work)
          queue.push_back(need);
      }
    }
  }

  /// The shortest cycle through a place with fewer than `bound` ranks, if there is one; 0: no
  /// bound.
  std::vector<Standing> through(std::uint32_t start, std::size_t bound) const {
    struct Reached {
      std::uint32_t place, from, want;
      std::size_t depth;
    };
    std::vector<Reached> reached{{start, kNone, kNone, 1}};
    std::vector<bool> seen(places_.size(), false);
    seen[start] = true;
    for (std::uint32_t i = 0; i < reached.size(); ++i) {
      if (bound != 0 && reached[i].depth >= bound) return {};
      for (const Wish& wish : wishes_[reached[i].place]) {
        if (wish.place == start) {
          std::vector<Standing> cycle;
          std::uint32_t want = wish.want;
          for (std::uint32_t at = i; at != kNone; at = reached[at].from) {
            cycle.push_back(
                {places_[reached[at].place].claim, places_[reached[at].place].unit, want});
            want = reached[at].want;
          }
          std::reverse(cycle.begin(), cycle.end());
          return cycle;
        }
        if (seen[wish.place]) continue;
        seen[wish.place] = true;
        reached.push_back({wish.place, i, wish.want, reached[i].depth + 1});
      }
    }
    return {};
  }

  const OrderClaims& claims_;
  const WorkGraph& graph_;
  std::vector<bool> stuck_;
  std::vector<std::vector<std::uint32_t>> owners_;  // per unit: the claims whose orders contain it
  std::vector<std::vector<Step>> steps_;            // per unit: the stuck steps directly before it
  Adjacency needs_;                                 // per unit: the stuck units that it needs
  // Per unit: the last place whose search reached it.
  std::vector<std::uint32_t> seen_;
  std::vector<Step> places_;
  std::map<Step, std::uint32_t> number_;   // of a place
  std::vector<std::vector<Wish>> wishes_;  // per place
};

/// Whether regions differ only in their index: stages of a partition.
bool one_name(const Dag& dag) {
  const auto is_part = [&](const Chunk& chunk) {
    return chunk.region.valid() && !dag.regions.parent(chunk.region).valid();
  };
  return std::all_of(dag.chunks.begin(), dag.chunks.end(), [&](const Chunk& chunk) {
    return is_part(chunk) && is_part(dag.chunks.front()) &&
           dag.regions.name(chunk.region) == dag.regions.name(dag.chunks.front().region);
  });
}

/// `BI2.0`, `F0` if the rank has only one region; communication is named by the producer of its
/// values, `F0.send`, `B.reduce`.
std::string cell_text(const Dag& dag, const Node& node, bool with_region) {
  const Node* work = &node;
  while (!work->chunk.valid())
    work = &dag.node(dag.inputs_of(dag.adding_member(*work)).front().source.node);
  std::string text(pass_name(work->pass));
  if (with_region) {
    const RegionId region = dag.chunks[work->chunk.index()].region;
    text += one_name(dag) ? std::to_string(dag.regions.index(region))
                          : dag.regions.print(region, dag.context->symbols);
  }
  if (node.reduces_gradients()) return text + ".reduce";
  text += (with_region ? "." : "") + std::to_string(Instances(dag).position(node.instance));
  return is_message(node.kind) ? text + (is_send(node.kind) ? ".send" : ".recv") : text;
}

}  // namespace

std::vector<Standing> deadlock_cycle(const OrderClaims& claims, const WorkGraph& graph,
                                     std::span<const std::uint32_t> done) {
  return Deadlock(claims, graph, done).cycle();
}

std::vector<std::string> standing_grid(const Dag& dag, const OrderClaims& claims,
                                       const WorkGraph& graph, const Adjacency& more,
                                       std::span<const Standing> cycle) {
  std::vector<std::uint32_t> start;
  const std::vector<std::uint32_t> done = topological_order(graph, more, start);
  std::vector<bool> is_done(graph.units(), false);
  for (const std::uint32_t unit : done) is_done[unit] = true;

  std::vector<Standing> ranks(cycle.begin(), cycle.end());
  std::sort(ranks.begin(), ranks.end(),
            [](const Standing& a, const Standing& b) { return a.claim < b.claim; });
  ranks.erase(std::unique(ranks.begin(), ranks.end(),
                          [](const Standing& a, const Standing& b) { return a.claim == b.claim; }),
              ranks.end());
  const std::size_t left_out = ranks.size() > kRows ? ranks.size() - kRows : 0;
  ranks.resize(ranks.size() - left_out);

  std::vector<std::vector<GridCell>> rows;
  std::uint32_t last = 0;
  for (const Standing& rank : ranks) {
    const std::vector<std::uint32_t>& units = claims.units(rank.claim);
    const auto region = [&](std::uint32_t unit) {
      return dag.chunks[dag.node(graph.front(unit)).chunk.index()].region;
    };
    const bool with_region = std::any_of(units.begin(), units.end(), [&](std::uint32_t unit) {
      return region(unit) != region(units.front());
    });
    std::vector<std::uint32_t> ran;
    for (const std::uint32_t unit : units) {
      if (is_done[unit]) ran.push_back(unit);
    }
    std::stable_sort(ran.begin(), ran.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return start[a] < start[b]; });
    std::vector<GridCell>& cells = rows.emplace_back();
    std::uint32_t free = 0;
    for (const std::uint32_t unit : ran) {  // members of a group one after the other
      const std::uint32_t at = std::max(start[unit], free);
      free = at + graph.duration(unit);
      cells.push_back({at, free, cell_text(dag, dag.node(graph.front(unit)), with_region), false});
    }
    cells.push_back(
        {free, free + 1,
         "[" + cell_text(dag, dag.node(claims.member(rank.at, rank.claim)), with_region) + "]",
         false});
    last = std::max(last, free);
  }

  const std::uint32_t first = last >= kColumns ? last - kColumns + 1 : 0;
  std::size_t width = 1, name = 0;
  for (const std::vector<GridCell>& cells : rows) {
    for (const GridCell& cell : cells) {
      if (cell.end > first)
        width =
            std::max(width, (cell.text.size() + cell.end - cell.start) / (cell.end - cell.start));
    }
  }
  for (const Standing& rank : ranks) name = std::max(name, claims.rank_text(rank.claim).size());
  std::vector<std::string> lines;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string rank = claims.rank_text(ranks[r].claim);
    rank.resize(name + 2, ' ');
    GridCell& stands = rows[r].back();  // shown if the others are
    stands.start = std::max(stands.start, first);
    stands.end = stands.start + 1;
    lines.push_back(grid_line(std::move(rank), rows[r], first, width));
  }
  if (left_out > 0) lines.push_back("and " + std::to_string(left_out) + " more ranks");
  return lines;
}

}  // namespace piper::passes
