#pragma once
// One order of all work that agrees with the claimed orders and with the data flow; list scheduling
// decides the rest.

#include <optional>
#include <vector>

#include "passes/order/apply_orders.h"

namespace piper::passes {

/// All chunk nodes in an order that agrees with every rank's.
struct ComputeOrder {
  std::vector<dag::NodeId> nodes;
  // All units in an order that agrees with `nodes`, named communication and data flow; empty:
  // unknown.
  std::vector<std::uint32_t> topological;
};

/// Nothing after reporting a contradiction between the orders and the data flow.
std::optional<ComputeOrder> compute_order(const dag::Dag& dag, const ClaimedOrder& claimed,
                                          const WorkGraph& graph, const RoleTable& roles,
                                          DiagnosticSink& sink);

}  // namespace piper::passes
