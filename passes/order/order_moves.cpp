#include "passes/order/order_moves.h"

#include <algorithm>

namespace piper::passes {

using namespace dag;

namespace {

/// Each try sorts all work.
constexpr std::size_t kMaxTries = 24;

using Edges = std::vector<Adjacency::Pair>;

/// A modifiable copy of the edges of one claim.
struct Changed {
  Edges edges, named, late;
};

std::vector<std::uint32_t> before(const Edges& edges, std::uint32_t unit) {
  std::vector<std::uint32_t> found;
  for (const auto& [from, to] : edges) {
    if (to == unit) found.push_back(from);
  }
  return found;
}

/// Takes a unit out of the order and joins its predecessors and successors.
void take_out(Changed& order, std::uint32_t unit) {
  const std::vector<std::uint32_t> earlier = before(order.edges, unit);
  const auto take = [&](Edges& edges) {
    Edges kept;
    for (const auto& [from, to] : edges) {
      if (to == unit) continue;
      if (from != unit) {
        kept.emplace_back(from, to);
        continue;
      }
      for (const std::uint32_t each : earlier) kept.emplace_back(each, to);
    }
    edges.swap(kept);
  };
  take(order.edges);
  take(order.named);
  take(order.late);
}

/// Puts a removed chunk directly before another.
void put_before(Changed& order, std::uint32_t unit, std::uint32_t place) {
  const std::vector<std::uint32_t> earlier = before(order.edges, place);
  std::erase_if(order.edges, [&](const Adjacency::Pair& edge) { return edge.second == place; });
  for (const std::uint32_t each : earlier) order.edges.emplace_back(each, unit);
  order.edges.emplace_back(unit, place);
}

/// Puts a removed chunk directly after another.
void put_behind(Changed& order, std::uint32_t unit, std::uint32_t place) {
  for (Edges* edges : {&order.edges, &order.named}) {
    for (auto& [from, to] : *edges) {
      if (from == place) from = unit;
    }
  }
  order.edges.emplace_back(place, unit);
}

class Search {
 public:
  Search(const Dag& dag, const OrderClaims& claims, const WorkGraph& graph)
      : dag_(dag), claims_(claims), graph_(graph) {}

  std::optional<std::string> find(std::span<const Standing> cycle) {
    // The cycle contains, per rank, an order edge from the operation at which it is stuck to one
    // that another rank waits for: a move that breaks the cycle moves one of these.
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const Standing& next = cycle[(i + 1) % cycle.size()];
      if (cycle[i].want == next.at) continue;  // the rank is stuck at it
      // Moving communication is tried before moving work.
      const bool named = graph_.sort(next.at) != WorkGraph::Sort::work;
      if (named) {
        if (auto text = move(next.claim, next.at, true)) return text;
      }
      if (auto text = move(next.claim, cycle[i].want, false)) return text;
      if (auto text = named ? std::nullopt : move(next.claim, next.at, true)) return text;
    }
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const Standing& next = cycle[(i + 1) % cycle.size()];
      if (auto text = swap_lines(next.claim, cycle[i].want, next.at)) return text;
    }
    return std::nullopt;
  }

 private:
  using Orders = std::vector<std::pair<std::uint32_t, Changed>>;

  Changed order_of(std::uint32_t claim) const {
    const auto edges = claims_.edges(claim), named = claims_.named(claim),
               late = claims_.late(claim);
    return {Edges(edges.begin(), edges.end()), Edges(named.begin(), named.end()),
            Edges(late.begin(), late.end())};
  }

  /// The edges of all claims, some of them changed.
  Edges with(const Orders& changed) const {
    Edges all;
    for (std::uint32_t claim = 0; claim < claims_.size(); ++claim) {
      const auto found = std::find_if(changed.begin(), changed.end(),
                                      [&](const auto& each) { return each.first == claim; });
      const Changed own = found == changed.end() ? order_of(claim) : found->second;
      all.insert(all.end(), own.edges.begin(), own.edges.end());
      all.insert(all.end(), own.named.begin(), own.named.end());
      all.insert(all.end(), own.late.begin(), own.late.end());
    }
    return all;
  }

  /// Whether a topological order of all work exists with these edges.
  bool is_legal(const Edges& orders) const {
    return topological_order(graph_, Adjacency(graph_.units(), orders)).size() == graph_.units();
  }

  /// The units that need the unit, in the data flow and these orders, or the units that it needs.
  std::vector<bool> reached_from(std::uint32_t unit, const Edges& orders, bool backwards) const {
    Edges all = orders;
    for (std::uint32_t from = 0; from < graph_.units(); ++from) {
      for (const std::uint32_t to : graph_.successors(from)) all.emplace_back(from, to);
    }
    if (backwards) {
      for (auto& [from, to] : all) std::swap(from, to);
    }
    const Adjacency next(graph_.units(), all);
    std::vector<bool> reached(graph_.units(), false);
    std::vector<std::uint32_t> queue{unit};
    while (!queue.empty()) {
      const std::uint32_t at = queue.back();
      queue.pop_back();
      for (const std::uint32_t to : next.of(at)) {
        if (!reached[to]) queue.push_back(to);
        reached[to] = true;
      }
    }
    return reached;
  }

  /// `later`: moves the unit after the last operation of the claim that it needs; else before the
  /// first operation that needs it. If the order without the unit is illegal, no place is legal.
  std::optional<std::string> move(std::uint32_t claim, std::uint32_t unit, bool later) {
    if (++tries_ > kMaxTries) return std::nullopt;
    const bool chunk = graph_.sort(unit) == WorkGraph::Sort::work;
    Changed order = order_of(claim);
    take_out(order, unit);
    const Edges rest = with({{claim, order}});
    if (!is_legal(rest)) return std::nullopt;
    const std::vector<bool> bound = reached_from(unit, rest, later);
    const std::vector<std::uint32_t>& units = claims_.units(claim);
    const auto is_bound = [&](std::uint32_t each) { return each != unit && bound[each]; };
    const auto first = std::find_if(units.begin(), units.end(), is_bound);
    if (first == units.end()) return std::nullopt;
    const std::uint32_t place =
        later ? *std::find_if(units.rbegin(), units.rend(), is_bound) : *first;
    if (!chunk) {  // communication waits for the previous step of the order
      if (later) order.named.emplace_back(place, unit);
      for (const std::uint32_t each : before(order.edges, place)) {
        if (!later) order.named.emplace_back(each, unit);
      }
    } else if (later) {
      put_behind(order, unit, place);
    } else {
      put_before(order, unit, place);
    }
    if (!is_legal(with({{claim, std::move(order)}}))) return std::nullopt;
    const std::string moved = claims_.text(unit, claim) + (later ? "` behind `" : "` before `") +
                              claims_.text(place, claim);
    return "in the order of `" + claims_.rank_text(claim) + "`, move `" + moved + "`";
  }

  /// A line that is written once may run many times: swaps two consecutive operations of the text
  /// everywhere.
  std::optional<std::string> swap_lines(std::uint32_t claim, std::uint32_t wanted,
                                        std::uint32_t at) {
    if (++tries_ > kMaxTries) return std::nullopt;
    const SourceRange first = range(at, claim), second = range(wanted, claim);
    const std::string first_text = source(first), second_text = source(second);
    if (first_text.empty() || second_text.empty() || first == second) return std::nullopt;
    Orders changed;
    for (std::uint32_t each = 0; each < claims_.size(); ++each) {
      std::vector<std::uint32_t> units = claims_.units(each);
      Changed order = order_of(each);
      if (units.empty()) continue;                                      // it has no order
      if (order.edges.size() + 1 != units.size()) return std::nullopt;  // groups
      const auto while_at = [&](std::size_t i, SourceRange place) {
        while (i < units.size() && range(units[i], each) == place) ++i;
        return i;
      };
      for (std::size_t i = 0, end = 0; i < units.size(); i = end) {
        const std::size_t middle = while_at(i, first);
        end = middle > i ? while_at(middle, second) : i + 1;
        const auto at = [&](std::size_t k) {
          return units.begin() + static_cast<std::ptrdiff_t>(k);
        };
        if (middle > i) std::rotate(at(i), at(middle), at(end));
      }
      order.edges.clear();
      for (std::size_t i = 0; i + 1 < units.size(); ++i)
        order.edges.emplace_back(units[i], units[i + 1]);
      changed.emplace_back(each, std::move(order));
    }
    if (!is_legal(with(changed))) return std::nullopt;
    return "put `" + second_text + "` before `" + first_text + "`";
  }

  SourceRange range(std::uint32_t unit, std::uint32_t claim) const {
    return dag_.context->locations.primary(claims_.loc(unit, claim));
  }

  /// The source text of a range; empty if unknown.
  std::string source(SourceRange range) const {
    const SourceTable& files = dag_.context->locations.files();
    if (!range.valid() || !files.has_text(range.file)) return "";
    return std::string(files.text(range.file).substr(range.begin, range.end - range.begin));
  }

  const Dag& dag_;
  const OrderClaims& claims_;
  const WorkGraph& graph_;
  std::size_t tries_ = 0;
};

}  // namespace

std::optional<std::string> legal_change(const Dag& dag, const OrderClaims& claims,
                                        const WorkGraph& graph, std::span<const Standing> cycle) {
  return Search(dag, claims, graph).find(cycle);
}

}  // namespace piper::passes
