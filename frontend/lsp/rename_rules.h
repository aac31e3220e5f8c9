#pragma once
// Names with a meaning beyond their uses: data, directives, initial values. A new name for them
// changes the program or its data.

#include <string>
#include <string_view>

#include "frontend/lsp/names.h"

namespace piper::lsp {

/// The reason why the declaration cannot be renamed; empty if it can.
std::string why_fixed(Request& request, const Name& name);
/// The reason, beside errors of the analysis, why the name `wanted` is refused; empty if it is
/// legal.
std::string why_not(Request& request, const Name& name, std::string_view wanted);

}  // namespace piper::lsp
