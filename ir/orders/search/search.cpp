#include "ir/orders/search/search.h"

#include <algorithm>

#include "ir/orders/search/fill_idle.h"
#include "ir/orders/search/improve.h"
#include "ir/orders/search/starts.h"

namespace piper::orders {

namespace {

/// Starts that are improved for a while before the best of them goes on.
constexpr std::size_t kStarts = 4;

class Starts {
 public:
  Starts(const SearchProblem& problem, Timing& timing, double bound)
      : problem_(problem), timing_(timing), bound_(bound) {}

  /// False when an order reaches the bound.
  bool take(CodeLists lists) {
    if (problem_.keeps(lists)) {
      if (const auto score = timing_.run(lists)) keep({lists, *score});
    }
    for (const FillRule& rule : kFillRules) {
      if (rule.weights_last && !problem_.split()) continue;
      CodeLists filled = fill_idle(problem_, lists, rule);
      if (!problem_.keeps(filled)) continue;
      if (const auto score = timing_.run(filled)) keep({std::move(filled), *score});
    }
    return best_.empty() || !reaches(best_.front().score.value, bound_);
  }

  std::vector<ScoredLists>& best() { return best_; }

 private:
  void keep(ScoredLists start) {
    const auto place = std::upper_bound(
        best_.begin(), best_.end(), start,
        [](const ScoredLists& a, const ScoredLists& b) { return a.score < b.score; });
    if (place != best_.begin() && std::prev(place)->lists == start.lists) return;
    best_.insert(place, std::move(start));
    if (best_.size() > kStarts) best_.pop_back();
  }

  const SearchProblem& problem_;
  Timing& timing_;
  const double bound_;
  std::vector<ScoredLists> best_;  // the best first
};

}  // namespace

std::uint64_t default_tries(std::uint64_t operations) {
  constexpr std::uint64_t kTimed = 25'000'000;
  return std::clamp<std::uint64_t>(kTimed / std::max<std::uint64_t>(operations, 1), 50, 50'000);
}

SearchedOrder search(const PlacedParts& work, const SearchRule& rule) {
  SearchedOrder result;
  const SearchProblem problem(work, rule);
  if (const auto [demand, rank] = problem.largest_demand(); demand > problem.capacity()) {
    result.min_cap = demand * work.share();
    result.largest = work.ranks[rank];
    return result;
  }
  result.bound = bounds(problem).of(rule.minimize);
  Timing timing(problem);
  Starts starts(problem, timing, result.bound);
  const Shape shape = shape_of(problem);
  const TakeStart take = [&](CodeLists lists) { return starts.take(std::move(lists)); };
  // `greedy` always gives an order, so there is a start.
  greedy_starts(work, problem, take);
  published_starts(problem, shape, take);
  line_heuristic(problem, shape, take);
  folded_heuristic(problem, shape, take);
  block_starts(problem, shape, take);

  SearchNumbers numbers(rule.seed);
  std::vector<ScoredLists>& best = starts.best();
  const std::uint64_t first = rule.tries / (2 * kStarts);
  const bool reached = reaches(best.front().score.value, result.bound);
  for (ScoredLists& start : best) {
    if (reached) break;
    start = improve(problem, timing, std::move(start), first, result.bound, numbers);
  }
  const auto chosen = std::min_element(
      best.begin(), best.end(),
      [](const ScoredLists& a, const ScoredLists& b) { return a.score < b.score; });
  const std::uint64_t spent = first * best.size();
  ScoredLists order = improve(problem, timing, std::move(*chosen),
                              rule.tries > spent ? rule.tries - spent : 0, result.bound, numbers);
  result.value = order.score.value;
  result.lists = problem.operations_of(order.lists);
  return result;
}

}  // namespace piper::orders
