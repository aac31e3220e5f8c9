#pragma once
// `swap` and `before`: two steps of a rank change places, or one moves directly before the other.
//
//   swap(F0 F1 B0, F1, B0)     ->   F0 B0 F1
//   before(F0 F1 B0, B0, F1)   ->   F0 B0 F1

#include "ir/orders/order_value.h"

namespace piper::orders {

struct Rearranged {
  std::size_t ranks = 0;  // that have both steps
  /// A rank with several steps that `pattern` matches, or with a step that it matches in part: the
  /// order is as it was, and `step` is one of them.
  struct Unclear {
    DeviceSetId devices;
    const Pattern* pattern;
    std::size_t steps = 0;
    LocId step;
  };
  std::optional<Unclear> unclear;
};

/// On each rank that has both, exchanges the step that `a` matches and the one that `b` matches.
/// Slots stay with their places.
Rearranged swap(OrderTree& tree, const Pattern& a, const Pattern& b, const OnRank& on);

/// On each rank that has both, moves the step that `moved` matches directly before the one that
/// `next` matches, into its member of a group too. Changed ranks have no slots then.
Rearranged move_before(OrderTree& tree, const Pattern& moved, const Pattern& next,
                       const OnRank& on);

}  // namespace piper::orders
