#pragma once
// `only`: an order without the ranks outside a device set.
//
//   only(p[0]: F0 B0, p[1]: F0 B0; p[1])   ->   p[1]: F0 B0

#include "ir/orders/order_value.h"

namespace piper::orders {

/// Keeps the ranks for which `on` holds, and records how many ranks shared the model before. False if
/// none is left.
bool only(OrderTree& tree, const OnRank& on);

/// The number of ranks that share the model: those that name different operations, before `only`.
std::uint32_t sharing_ranks(const OrderTree& tree);

}  // namespace piper::orders
