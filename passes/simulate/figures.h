#pragma once
// The figures of a timeline that follow from its entries: idle time, makespan, span, bubbles, critical path (docs/execution.md section 8).

#include "passes/simulate/timeline.h"

namespace piper::passes {

/// Fills them. The ranks have their `work`, and entries their causes.
void fill_figures(Timeline& timeline);

}  // namespace piper::passes
