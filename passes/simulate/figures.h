#pragma once
// The figures of a timeline that follow from its entries: idle time, makespan, span, bubbles,
// critical path (docs/execution.md section 8).

#include "passes/simulate/timeline.h"

namespace piper::passes {

/// Fills them. The `work` of ranks and the causes of entries must be filled.
void fill_figures(Timeline& timeline);

}  // namespace piper::passes
