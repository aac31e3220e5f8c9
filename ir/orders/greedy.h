#pragma once
// `greedy`: list scheduling of the parts of a partition on the ranks that hold them.
//
//   greedy(2 parts on 2 ranks, 2 microbatches; B before F)   ->   F0 F1 B0 B1 | F0 B0 F1 B1

#include <array>
#include <optional>

#include "ir/orders/placed_parts.h"

namespace piper::orders {

struct GreedyRule : OrderRule {
  /// `F`, `B` and `BW`, the most urgent first; `B` means `BI` if backwards are split.
  std::array<Pass, 3> preference = {Pass::B, Pass::F, Pass::BW};
};

struct GreedyOrder {
  OperationLists lists;
  /// Set if no order keeps the cap: the smallest cap that works. `largest` is a rank that needs it.
  std::optional<double> min_cap;
  DeviceSetId largest;
};

/// A rank that is free starts the most urgent operation that is ready; of one pass the one of the
/// lowest instance, then of the deepest part. With a cap, a rank admits instances in their order,
/// as long as all activations that an instance will need there fit beside those of the ones
/// admitted before; so the order keeps the cap and cannot deadlock.
GreedyOrder greedy(const PlacedParts& work, const GreedyRule& rule);

}  // namespace piper::orders
