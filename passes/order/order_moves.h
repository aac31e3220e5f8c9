#pragma once
// One change of the orders that lets ranks run which wait for each other.
//
//   in the order of `pp[1]`, move `F stage[1] mb[1]` before `BI stage[1] mb[0]`

#include <optional>
#include <span>
#include <string>

#include "passes/order/order_standstill.h"

namespace piper::passes {

/// A move of one operation in the order of one of the ranks after which all ranks run to their end, as a sort of the changed orders shows; else two operations
/// of the text that change places wherever they follow each other. Nothing: no such change does, or none was found in a bounded number of tries.
std::optional<std::string> legal_change(const dag::Dag& dag, const OrderClaims& claims, const WorkGraph& graph, std::span<const Standing> circle);

}  // namespace piper::passes
