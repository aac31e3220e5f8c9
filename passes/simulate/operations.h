#pragma once
// The timeline of operations: the order of work on each rank, data edges and stated costs
// (docs/execution.md section 8). Every figure, picture and bound that is not in seconds comes from
// here. It uses the order of work on each rank and the dependencies, including named communication,
// which waits for the previous step of its order and delays its readers. Communication has the
// latency `p2p` and occupies no device; events and windows are ignored.
//
//   const auto timeline = simulate_operations(dag, {.f = 1, .bi = 1, .bw = 1}, sink);
//   timeline->bubble_span
//
// An operation takes the cost of its pass times P times its fraction of the model (shares.h), for P
// ranks with different work: replicas count once. One of q slices takes 1/q of that. Without
// microbatches an operation costs as much as all of them. The chunks of an operation run as one,
// unless other ranks work between them.

#include <optional>

#include "ir/diagnostics/diagnostics.h"
#include "passes/simulate/costs.h"
#include "passes/simulate/timeline.h"

namespace piper::passes {

/// `dag` is at level ordered or above, and its ranks are those of `show orders`. Nothing after
/// reporting a deadlock of groups that run together.
std::optional<Timeline> simulate_operations(const dag::Dag& dag, const OperationCosts& costs,
                                            DiagnosticSink& sink);

/// The columns of a grid: every operation takes one, a whole backward two. Times are columns, and
/// figures are those of the columns.
Timeline simulate_columns(const dag::Dag& dag);

/// `bubble_span` of the timeline at default costs, without making one; `require bubble` bounds it.
double bubble_span(const dag::Dag& dag);

}  // namespace piper::passes
