#pragma once
// All checks of a strategy's lines: their numbers, the parts that partitions and splits make,
// orders, names, and each line by itself.
//
// Runs once, before any pass uses the lines; errors that passes report follow from the model and
// the DAG.

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "passes/selectors/nameable.h"

namespace piper::passes {

/// Reports errors in the lines of a strategy with evaluated orders; false if there are any.
bool check_strategy(const Nameable& nameable, const directive::Strategy& strategy,
                    DiagnosticSink& sink);

}  // namespace piper::passes
