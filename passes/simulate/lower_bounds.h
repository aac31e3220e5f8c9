#pragma once
// Lower bounds of span and makespan beside a timeline: no order of the same work on the same ranks,
// with the same peak of activations, is below them.

#include <optional>

#include "ir/orders/search/bounds.h"
#include "passes/simulate/costs.h"
#include "passes/simulate/timeline.h"

namespace piper::passes {

/// Nothing if the work is no chain of stages in all microbatches: work outside of stages, slices, a
/// stage with passes on several ranks, recomputation, overlap groups with a time of their own, and
/// neighbouring stages of a model that exchange nothing.
std::optional<orders::Bounds> lower_bounds(const Timeline& timeline, const OperationCosts& costs);

}  // namespace piper::passes
