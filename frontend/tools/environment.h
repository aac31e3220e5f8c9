#pragma once
// The variables of the environment that the driver itself reads; the runtime's own are in runtime/options.
//
//   const backend::JitOptions jit = jit_options(console.environment);   // CXX=clang++ PIPER_CACHE=/scratch/piper
//   for (const runtime::OptionRow& row : build_variables()) print(row.name, row.type, row.initial, row.meaning);

#include <map>
#include <span>
#include <string>

#include "backend/jit/jit.h"
#include "runtime/options.h"

namespace piper::tools {

/// The rows that `--help` prints.
std::span<const runtime::OptionRow> build_variables();

/// How generated programs are built. A variable that is empty counts as unset.
backend::JitOptions jit_options(const std::map<std::string, std::string>& environment);

}  // namespace piper::tools
