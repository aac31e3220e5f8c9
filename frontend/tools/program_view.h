#pragma once
// Device programs as the tools show them.

#include <string>

#include "ir/dag/plan.h"
#include "runtime/options.h"

namespace piper::tools {

/// The text of `show program`: one program per role.
std::string program_text(const dag::Dag& dag);

/// The table that `build` prints: kernels, library calls and bytes moved per body.
std::string kernel_table(const dag::Dag& dag);

/// Below it: the shapes of matrix products, largest first, how many places multiply so, and who multiplies there on this machine. Empty without products.
std::string product_table(const dag::Dag& dag, runtime::Math math);

}  // namespace piper::tools
