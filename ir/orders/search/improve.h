#pragma once
// Local search on orders: operations move within the list of their rank.

#include "ir/orders/search/timing.h"

namespace piper::orders {

/// Numbers that depend on the seed alone, on every platform (splitmix64).
class SearchNumbers {
 public:
  explicit SearchNumbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// From 0 to `bound` - 1.
  std::uint32_t below(std::size_t bound) {
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
  }

 private:
  std::uint64_t state_;
};

struct ScoredLists {
  CodeLists lists;
  Score score;
};

/// Looks at `tries` orders that lie near each other, and keeps the best one. Worse orders are taken
/// on the way, by late acceptance: if they are no worse than the one some tries before. Ends early
/// at `bound`, which no order is below. `start` keeps the cap.
ScoredLists improve(const SearchProblem& problem, Timing& timing, ScoredLists start,
                    std::uint64_t tries, double bound, SearchNumbers& numbers);

/// Differences of times below this fraction are rounding.
inline constexpr double kSameTime = 1e-9;
inline bool reaches(double value, double bound) { return value <= bound * (1 + kSameTime); }

}  // namespace piper::orders
