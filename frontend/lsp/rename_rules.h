#pragma once
// Names that more than their uses know: data, directives, first values. A new name for them changes the program, or what it finds.

#include <string>
#include <string_view>

#include "frontend/lsp/names.h"

namespace piper::lsp {

/// Why what is declared there keeps its name; empty: it does not.
std::string why_fixed(Request& request, const Name& name);
/// Why it cannot be called `wanted`, beside what the analysis says; empty: it can.
std::string why_not(Request& request, const Name& name, std::string_view wanted);

}  // namespace piper::lsp
