#pragma once
// Checks each line of a strategy by itself or beside others of its kind, independent of the place
// of its work; partitions, splits and orders have checks of their own.
//
//   stream p2p: stage[0]; replicate model over tp   ->   P4303 (`stage[0]` is work), P3040 (the mesh has no axis `tp`)

#include <string_view>

#include "ir/context.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "llvm/ADT/DenseSet.h"

namespace piper::passes {

/// The stream on which chunks run.
inline constexpr std::string_view kComputeStream = "compute";

/// Reports errors in the lines of a strategy. `unknown`: names that are neither regions nor
/// dimensions, which have been reported; a selector with one of them may mean a part.
void check_lines(const directive::Strategy& strategy, const Context& context,
                 const llvm::DenseSet<Symbol>& unknown, DiagnosticSink& sink);

}  // namespace piper::passes
