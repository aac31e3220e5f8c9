#pragma once
// Meanings of builtins and their arguments, each in one line: their types and defaults are in the
// signatures (`frontend/sema/builtins.def`).
//
//   meaning_of(sema::Builtin::sgd)            ->  "stochastic gradient descent"
//   meaning_of_argument("sgd", "lr")          ->  "the learning rate: a number, or ..."

#include <string_view>

#include "frontend/sema/builtins.h"

namespace piper::lsp {

std::string_view meaning_of(sema::Builtin builtin);
/// The meaning of an argument of the builtin of that name; empty for an unknown one.
std::string_view meaning_of_argument(std::string_view builtin, std::string_view argument);

}  // namespace piper::lsp
