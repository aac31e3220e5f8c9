#pragma once
// `postpone`: operations of one pass run later on their rank.
//
//   postpone(F0 B0 F1 B1, BW, 2)   ->   F0 BI0 F1 BI1 BW0 BW1

#include "ir/orders/order_value.h"

namespace piper::orders {

/// Moves each operation that matches behind the `by` steps that follow it and that do not move
/// themselves, or to the end of its rank; several at one place keep their order. A `B` that
/// `pattern` matches as `BW` becomes a `BI`, and its `BW` moves. Changed ranks have no slots then.
/// Returns the number of operations that match.
std::size_t postpone(OrderTree& tree, const Pattern& pattern, std::uint64_t by, const OnRank& on);

}  // namespace piper::orders
