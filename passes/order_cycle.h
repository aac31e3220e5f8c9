#pragma once
// The story of an order that contradicts the data flow: the shortest cycle, each edge with its source line.
//
//   error P3108: `B stage[1] mb[0]` waits for `F stage[1] mb[0]`, which the order puts after it

#include <span>

#include "passes/apply_orders.h"

namespace piper::passes {

/// `done`: the units that a topological sort of `graph` and `more` reached; the others hold a cycle. `more` are the edges of `claimed`.
void report_order_cycle(const dag::Dag& dag, const ClaimedOrder& claimed, const WorkGraph& graph, const Adjacency& more, std::span<const std::uint32_t> done,
                        DiagnosticSink& sink);

}  // namespace piper::passes
