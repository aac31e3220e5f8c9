#pragma once
// Lines of a strategy: what is wrong with a directive by itself or beside others of its kind, wherever the work is that it names.
//
//   stream p2p: stage[0]; replicate model over tp   ->   P4303 (`stage[0]` is work), P3040 (the mesh has no axis `tp`)
//
// Checked once, when the model is known and before any pass makes something of the lines.

#include <string_view>

#include "ir/context.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "llvm/ADT/DenseSet.h"

namespace piper::passes {

/// The stream on which chunks run.
inline constexpr std::string_view kComputeStream = "compute";

/// Whether a `split` of the strategy makes that dimension.
bool is_split_into(const directive::Strategy& strategy, Symbol name);

/// Transforms that `evaluate_orders` could not apply.
bool check_transforms(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink);
bool check_places(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink);
bool check_replicates(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink);
/// `recompute`, `offload` and `freeze`.
bool check_treatments(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink);
/// A line with a name that is `unknown` to model and strategy, which is told elsewhere, may mean a part by it.
bool check_streams(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink, const llvm::DenseSet<Symbol>& unknown = {});

}  // namespace piper::passes
