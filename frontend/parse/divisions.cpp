#include "frontend/parse/divisions.h"

#include <set>

#include "antlr4-runtime.h"
#include "frontend/parse/token_types.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {
using Lexer = generated::PipeLexer;
}  // namespace

void warn_of_divisions(const RawTokens& tokens, std::string_view text, FileId file,
                       SelectedReports& sink) {
  std::set<std::string_view> names;
  for (const RawToken& token : tokens) {
    if (token.type == Lexer::NAME) names.insert(text.substr(token.begin, token.end - token.begin));
  }
  bool gives_value = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const RawToken& token = tokens[i];
    if (token.first_on_line)
      gives_value =
          token.type == Lexer::LET || token.type == Lexer::VAR || token.type == Lexer::RETURN;
    gives_value = gives_value || token.type == Lexer::ASSIGN;
    // `steps: 16 // 2`, where a name is a comment.
    const bool setting = i > 0 && !token.first_on_line && tokens[i - 1].type == Lexer::COLON;
    const bool last = i + 1 == tokens.size() || tokens[i + 1].first_on_line;
    if (!last || !(gives_value || setting) || !ends_operand(token.type)) continue;
    std::string_view behind = text.substr(token.end, text.find('\n', token.end) - token.end);
    const std::uint32_t slashes = token.end + (behind.starts_with(' ') ? 1 : 0);
    if (behind.starts_with(' ')) behind.remove_prefix(1);
    if (!behind.starts_with("//")) continue;
    behind.remove_prefix(2);
    if (behind.starts_with(' ')) behind.remove_prefix(1);
    while (behind.ends_with(' ') || behind.ends_with('\r')) behind.remove_suffix(1);
    const bool number =
        !behind.empty() && behind.find_first_not_of("0123456789") == std::string_view::npos;
    if (!number && !(gives_value && names.contains(behind))) continue;
    sink.report(Code::divides_by_comment, {file, slashes, slashes + 2},
                "`//` begins a comment: this line does not divide by `{}`", behind)
        .hint(
            "write `/`, which floors if both sides are integers; for a comment put two spaces before it");
  }
}

}  // namespace piper::parse
