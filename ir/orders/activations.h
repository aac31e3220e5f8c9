#pragma once
// The activations that operations of an order keep and release, in microbatches of a device share
// (1/P of the model for P ranks). Parts of a partition count as equal.

#include "ir/orders/order_graph.h"

namespace piper::orders {

/// The activations that an `F` keeps, or that a `B` or `BW` releases (negative). Nothing for work
/// that is not exactly one part of a partition.
std::optional<double> activations(const directive::OrderOp& op, const OrderTree& tree,
                                  const Facts& facts, std::uint32_t sharing_ranks);

/// Amounts are sums of fractions: smaller differences are none.
inline constexpr double kSameAmount = 1e-6;

}  // namespace piper::orders
