#pragma once
// The diagnostic for orders that contradict the data flow: the operation at which each rank is
// stuck, the rank it waits for, the grid up to there, and a legal change.
//
//   error P3108: `pp[0]` and `pp[1]` wait for each other

#include <span>

#include "passes/order/apply_orders.h"

namespace piper::passes {

/// `done`: the units that a topological sort of `graph` and `more` reached; the others contain a
/// cycle. `more` are the edges of `claimed`.
void report_order_cycle(const dag::Dag& dag, const ClaimedOrder& claimed, const WorkGraph& graph,
                        const Adjacency& more, std::span<const std::uint32_t> done,
                        DiagnosticSink& sink);

}  // namespace piper::passes
