#pragma once
// From text to the tokens of the grammar: comments go into a list of their own, line ends become
// SEMI, brackets are made to match.
//
// Guarantees about the result: it ends with EOF; SEMI comes between and after statements and items,
// also before `}` and EOF, never twice and never after `{`; every bracket has its partner. Dropped
// and inserted tokens were reported. Inserted tokens have empty ranges.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ast/comment.h"
#include "frontend/source/selected_reports.h"

namespace piper::parse {

struct Token {
  std::size_t type = 0;  // of PipeParser
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct Tokens {
  std::vector<Token> list;
  // By the first byte of the token that a doc comment precedes.
  std::map<std::uint32_t, std::string> docs;
  std::vector<ast::Comment> comments;  // in text order, doc comments among them
  bool too_deep = false;               // reported; `list` ends early and must not be parsed
};

/// Brackets, operators and prefixes that may be open at one place; also bounds the depth of the
/// AST.
constexpr std::size_t kMaxNesting = 400;

/// How line ends and brackets are read. `with_mistakes` guesses the missing end of a statement from
/// the first word of the next line, and closes brackets there. A legal program may have such a word
/// on a line that goes on (`let a,` before `b = f()`), so it is read `as_written` first.
enum class Reading : std::uint8_t { as_written, with_mistakes };

Tokens tokenize(std::string_view text, FileId file, Reading reading, SelectedReports& sink);

}  // namespace piper::parse
