#pragma once
// One change of the orders that resolves a deadlock.
//
//   in the order of `pp[1]`, move `F stage[1] mb[1]` before `BI stage[1] mb[0]`

#include <optional>
#include <span>
#include <string>

#include "passes/order/order_deadlock.h"

namespace piper::passes {

/// A move of one operation in the order of one rank after which a topological sort of all orders
/// exists; else a swap of two operations of the text wherever they are consecutive. Nothing if no
/// such change was found in a bounded number of tries.
std::optional<std::string> legal_change(const dag::Dag& dag, const OrderClaims& claims,
                                        const WorkGraph& graph, std::span<const Standing> cycle);

}  // namespace piper::passes
