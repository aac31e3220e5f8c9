#pragma once
// One order of all work that agrees with what orders claim and with the data flow; what no order says is decided by list scheduling.

#include <optional>
#include <vector>

#include "passes/order/apply_orders.h"

namespace piper::passes {

/// All chunk nodes in an order that agrees with every rank's.
struct ComputeOrder {
  std::vector<dag::NodeId> nodes;
  std::vector<std::uint32_t> topological;  // all units in an order that agrees with `nodes`, named communication and data flow; empty: not known
};

/// As claimed, and for the rest as list scheduling decides. Nothing after reporting that the orders and the data flow contradict each other.
std::optional<ComputeOrder> compute_order(const dag::Dag& dag, const ClaimedOrder& claimed, const WorkGraph& graph, const RoleTable& roles,
                                          DiagnosticSink& sink);

}  // namespace piper::passes
