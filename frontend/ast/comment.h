#pragma once
// Comments as trivia: their position, and the token that they belong to. The parser does not see
// them; formatters and hover do.
//
//   let x = 1  // belongs to `1`: it follows it on its line
//   // belongs to `let`: it precedes it, on lines of its own
//   let y = 2

#include <cstdint>

#include "ir/location.h"

namespace piper::ast {

enum class CommentPlace : std::uint8_t {
  before,  // of the token that follows, or of the end of the file
  behind,  // of the token before, on its line
};

/// `// ...` or `/// ...`, without the line break.
struct Comment {
  SourceRange range;
  CommentPlace place{};
  // The first byte of the token that it belongs to; the size of the text: the end of the file.
  std::uint32_t token = 0;
};

}  // namespace piper::ast
