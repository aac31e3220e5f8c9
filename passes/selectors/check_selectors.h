#pragma once
// Checks every coordinate of the selectors of a strategy.
//
//   place layr[0] on p[0]; place stage[7] on p[1]   ->   P3000 for `layr`, P3001 for `stage[7]`

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/selectors/nameable.h"

namespace piper::passes {

/// Reports names that are neither regions nor dimensions, once each, and indices that none of that
/// name has; the parts of partitions are those that their lines make. `uncertain`: names whose
/// lines are refused, so that their indices are unknown. Returns the unknown names.
llvm::DenseSet<Symbol> check_names(const Nameable& nameable, const directive::Strategy& strategy,
                                   const llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink);
/// Reports selectors whose parts exist while no work has all of them; runs once the model is
/// partitioned. False if there are any.
bool check_parts_meet(const Nameable& nameable, const directive::Strategy& strategy,
                      DiagnosticSink& sink);

}  // namespace piper::passes
