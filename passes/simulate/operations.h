#pragma once
// The timeline of operations: the order of work on each rank, data edges and stated costs (docs/execution.md section 8). Every figure, picture and bound that is not in
// seconds comes from here. Of the plan it keeps the order of work on each rank and what needs what, named communication included: that waits for the step
// before it and delays what reads it. Communication has the latency `p2p` and occupies nobody; events and windows are dropped.
//
//   const auto timeline = simulate_operations(dag, {.f = 1, .bi = 1, .bw = 1}, sink);
//   timeline->bubble_span
//
// An operation takes the cost of its pass times P times its part of the model (shares.h), for P ranks that do different work: ranks that are replicas of each
// other count once. One of q slices takes 1/q of that. What is not split into microbatches costs as much as all of them. The pieces of an operation run as one,
// unless other ranks work between them.

#include <optional>

#include "ir/diagnostics/diagnostics.h"
#include "passes/simulate/costs.h"
#include "passes/simulate/timeline.h"

namespace piper::passes {

/// `dag` is at level ordered or above, and its ranks are those of `show orders`. Nothing after reporting that groups which run together wait for each other.
std::optional<Timeline> simulate_operations(const dag::Dag& dag, const OperationCosts& costs, DiagnosticSink& sink);

/// The columns of a grid: every operation takes one, a whole backward two. Times are columns, and figures are those of the columns.
Timeline simulate_columns(const dag::Dag& dag);

/// `bubble_span` of the timeline at default costs, without making one: what `require bubble` bounds.
double bubble_span(const dag::Dag& dag);

}  // namespace piper::passes
