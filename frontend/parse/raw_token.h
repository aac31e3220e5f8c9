#pragma once
// Tokens as the lexer reads them, before line ends become SEMI and brackets are made to match.

#include <vector>

#include "frontend/parse/token_filter.h"

namespace piper::parse {

struct RawToken : Token {
  bool first_on_line = false;
  bool replaced = false;  // replaces a form of another language, which was reported
  bool unclosed = false;  // `(` or `[` without its end before the statement's
};
using RawTokens = std::vector<RawToken>;

}  // namespace piper::parse
