#pragma once
// `search`: an order of the parts of a partition with a small span or makespan under a cap. It
// begins with list schedules, published orders and published heuristics, and improves the best of
// them by local search.
//
//   search(2 parts on 2 ranks, 4 microbatches; cap 2, split backward)   ->   an order of span 13, which is the bound

#include "ir/orders/search/bounds.h"
#include "ir/orders/search/problem.h"

namespace piper::orders {

struct SearchedOrder {
  OperationLists lists;
  double value = 0;  // of the objective
  double bound = 0;  // no order is below it
  /// Set if no order keeps the cap: the smallest cap that works. `largest` is a rank that needs it.
  std::optional<double> min_cap;
  DeviceSetId largest;
};

/// The result depends on the arguments alone. Its time grows with tries times operations.
SearchedOrder search(const PlacedParts& work, const SearchRule& rule);

/// Tries that take a fraction of a second.
std::uint64_t default_tries(std::uint64_t operations);

/// All beginnings of a search together take at most about the time of this many tries.
inline constexpr std::uint64_t kTimesOfStarts = 400;

/// The most operations that all tries together time.
inline constexpr std::uint64_t kMaxTimedOperations = 4'000'000'000;

}  // namespace piper::orders
