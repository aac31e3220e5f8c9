#pragma once
// The directive that a token of the generated lexer begins.
//
//   directive_of(Lexer::PLACE)  ->  DirectiveKind::place

#include <cstddef>
#include <optional>

#include "ir/directive/directive_rows.h"

namespace piper::parse {

/// Nothing for tokens that begin no directive.
std::optional<directive::DirectiveKind> directive_of(std::size_t token_type);

}  // namespace piper::parse
