#pragma once
// From text to the tokens of the lexer, with the comments between them.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ast/comment.h"
#include "frontend/parse/raw_token.h"
#include "frontend/source/selected_reports.h"

namespace piper::parse {

/// The lexer sees one character per byte, so that its offsets are byte offsets. Bytes beyond ASCII
/// are legal only where any character is, hence one substitute is enough for all of them.
std::string one_character_per_byte(std::string_view text);

struct RawText {
  RawTokens tokens;
  // By the first byte of the token that a doc comment precedes.
  std::map<std::uint32_t, std::string> docs;
  std::vector<ast::Comment> comments;  // in text order, doc comments among them
  std::set<std::uint32_t> unclosed_string_ends;
};

/// Reads all tokens of `text`, UNKNOWN ones among them. Reports unclosed strings, malformed numbers
/// and strings in other quotes, which become STRING tokens, and skips comments of other languages,
/// which it reports too.
RawText read_raw_tokens(std::string_view text, FileId file, SelectedReports& sink);

/// Reports and removes text that is not a token.
void remove_unknown_text(RawTokens& tokens, std::string_view text, FileId file,
                         SelectedReports& sink);

}  // namespace piper::parse
