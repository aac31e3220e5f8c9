#pragma once
// The simulator of orders: operations and data edges at stated costs (DESIGN.md section 8). Of the plan it keeps the order of work on each rank and what needs
// what; communication has the latency `p2p` and occupies nobody; events and windows are dropped.
//
//   const auto timeline = simulate_operations(dag, partition, {.f = 1, .bi = 1, .bw = 1}, sink);
//   timeline->bubble_span
//
// An operation on one of S stages takes its cost times P / S, for P ranks; one of q slices 1/q of that. Where no single partition makes stages, an operation
// counts its share of its pass by the op table, and chunks of one stage share what is the stage's in the same way. What is not split into microbatches costs as
// much as all of them.

#include <optional>

#include "ir/diagnostics/diagnostics.h"
#include "passes/simulate/costs.h"
#include "passes/simulate/timeline.h"

namespace piper::passes {

/// `dag` is at level ordered or above, and its ranks are those of `show orders`. Nothing after reporting that groups which run together wait for each other.
std::optional<Timeline> simulate_operations(const dag::Dag& dag, const OperationCosts& costs, DiagnosticSink& sink);

/// As grids draw them: F, R, BI and BW take one unit of time and B takes two, whatever part of the model they are.
Timeline simulate_units(const dag::Dag& dag);

/// `bubble_span` of the timeline at default costs, without making one: what `require bubble` bounds.
double bubble_span(const dag::Dag& dag);

}  // namespace piper::passes
