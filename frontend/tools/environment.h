#pragma once
// The variables of the environment that commands read: the driver's own, and those of
// runtime/options.
//
//   const backend::JitOptions jit = jit_options(console.environment);   // CXX=clang++ PIPER_CACHE=/scratch/piper
//   for (const runtime::OptionRow& row : environment_variables()) print(row.name, row.type, row.initial, row.meaning);
//   report_unknown_variables(console.environment, sink);                // `PIPER_THREAD=4` is P6109

#include <map>
#include <string>
#include <vector>

#include "backend/jit/jit.h"
#include "runtime/options.h"

namespace piper::tools {

/// The variables of `train`, as `--help` prints them.
std::vector<runtime::OptionRow> environment_variables();
/// The variables of `repl`.
std::vector<runtime::OptionRow> session_variables();

/// Warns of every unknown variable whose name begins with `PIPER_`.
void report_unknown_variables(const std::map<std::string, std::string>& environment,
                              DiagnosticSink& sink);

/// How generated programs are built. A variable that is empty counts as unset.
backend::JitOptions jit_options(const std::map<std::string, std::string>& environment);

/// The path of the history of `repl`; empty: none is kept.
std::string history_path(const std::map<std::string, std::string>& environment);

}  // namespace piper::tools
