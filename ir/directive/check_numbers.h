#pragma once
// Checks the numbers of directives that were built in memory.
//
//   offload stage[0] with window: 0   ->   P3200 "the window is `0`; it must be at least 1"

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::directive {

/// Reports numbers of a directive that are out of bounds (ir/directive/numbers.h).
void check_numbers(const Directive& directive, DiagnosticSink& sink);

}  // namespace piper::directive
