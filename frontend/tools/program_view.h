#pragma once
// Device programs as the tools show them.

#include <string>

#include "backend/device_program/device_program.h"
#include "ir/dag/plan.h"

namespace piper::tools {

/// The text of `show program`: one program per role.
std::string program_text(const dag::Dag& dag);

/// The table that `build` prints: kernels, library calls and bytes moved per body.
std::string kernel_table(const backend::ProgramSet& programs);

}  // namespace piper::tools
