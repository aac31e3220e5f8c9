#include "frontend/parse/directive_tokens.h"

#include <array>
#include <string>

#include "antlr4-runtime.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {

using Lexer = generated::PipeLexer;
using Table = std::array<std::optional<directive::DirectiveKind>, Lexer::PASS>;

/// The directive of each keyword's token.
Table directives_by_token() {
  antlr4::ANTLRInputStream input;
  const Lexer lexer(&input);
  Table table;
  for (std::size_t type = Lexer::AND; type < Lexer::PASS; ++type) {
    const std::string quoted(lexer.getVocabulary().getLiteralName(type));  // 'place'
    const directive::DirectiveRow* const row =
        directive::find_directive(std::string_view(quoted).substr(1, quoted.size() - 2));
    if (row != nullptr) table[type] = row->kind;
  }
  return table;
}

}  // namespace

std::optional<directive::DirectiveKind> directive_of(std::size_t token_type) {
  static const Table table = directives_by_token();
  return token_type < table.size() ? table[token_type] : std::nullopt;
}

}  // namespace piper::parse
