#pragma once
// `squeeze`: the steps of each rank get the earliest slots at which they can run, in their order.
//
//   squeeze(at 0: F0, at 7: B0, at 9: F1)   ->   at 0: F0, at 1: B0, at 3: F1

#include "ir/orders/order_graph.h"

namespace piper::orders {

/// The slot of a step is the column in which its first operation starts. The order of no rank
/// changes. False if ranks wait for each other forever: nothing changes then, and the compiler
/// reports the deadlock.
bool squeeze(OrderTree& tree, const OrderGraph& graph);

}  // namespace piper::orders
