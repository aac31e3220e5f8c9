#pragma once
// Checks the lines of a strategy: errors of a directive by itself or beside others of its kind,
// independent of the place of its work.
//
//   stream p2p: stage[0]; replicate model over tp   ->   P4303 (`stage[0]` is work), P3040 (the mesh has no axis `tp`)
//
// Runs once, before any pass uses the lines; errors that passes report follow from the model and
// the DAG.

#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "passes/selectors/nameable.h"

namespace piper::passes {

/// The stream on which chunks run.
inline constexpr std::string_view kComputeStream = "compute";

/// Reports errors in the lines of a strategy with evaluated orders; false if there are any.
bool check_lines(const Nameable& nameable, const directive::Strategy& strategy,
                 DiagnosticSink& sink);

}  // namespace piper::passes
