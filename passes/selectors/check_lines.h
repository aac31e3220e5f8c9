#pragma once
// Lines of a strategy: what is wrong with a directive by itself or beside others of its kind, wherever the work is that it names.
//
//   stream p2p: stage[0]; replicate model over tp   ->   P4303 (`stage[0]` is work), P3040 (the mesh has no axis `tp`)
//
// Checked once, before any pass makes something of the lines; what passes refuse follows from the model and the DAG.

#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "passes/selectors/nameable.h"

namespace piper::passes {

/// The stream on which chunks run.
inline constexpr std::string_view kComputeStream = "compute";

/// What `split` lines cut the batch into.
std::vector<directive::NamedExtent> dimensions(const directive::Strategy& strategy);
/// Whether a `split` of the strategy makes that dimension.
bool is_split_into(const directive::Strategy& strategy, Symbol name);

/// Reports what is wrong with the lines of a strategy whose orders are evaluated; false where anything is.
bool check_lines(const Nameable& nameable, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
