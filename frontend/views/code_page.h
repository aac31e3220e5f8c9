#pragma once
// The page of a diagnostic for a reader.

#include <string>

#include "ir/diagnostics/diagnostics.h"

namespace piper::views {

/// Without its comments, which are for the tests of its examples.
std::string code_page(Code code);

}  // namespace piper::views
