#include "frontend/parse/lexemes.h"

#include <algorithm>
#include <string>

#include "antlr4-runtime.h"
#include "frontend/parse/read_raw_tokens.h"
#include "frontend/parse/soft_keywords.h"
#include "frontend/parse/token_types.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {

using Lexer = generated::PipeLexer;

LexemeKind kind_of(std::size_t type) {
  switch (type) {
    case Lexer::PASS: return LexemeKind::pass;
    case Lexer::NAME: return LexemeKind::name;
    case Lexer::NAMES: return LexemeKind::keyword;
    case Lexer::NUMBER:
    case Lexer::BAD_NUMBER: return LexemeKind::number;
    case Lexer::STRING:
    case Lexer::UNCLOSED_STRING: return LexemeKind::string;
    case Lexer::LPAREN:
    case Lexer::LBRACKET:
    case Lexer::LBRACE: return LexemeKind::open;
    case Lexer::RPAREN:
    case Lexer::RBRACKET:
    case Lexer::RBRACE: return LexemeKind::close;
    case Lexer::DOC:
    case Lexer::COMMENT: return LexemeKind::comment;
    case Lexer::UNKNOWN: return LexemeKind::unknown;
    default:
      return type >= Lexer::AND && type < Lexer::PASS ? LexemeKind::keyword : LexemeKind::sign;
  }
}

/// Makes names of the words that are no keywords at their place; `types` are those of the lexemes.
void rename_soft_keywords(std::vector<Lexeme>& list, const std::vector<std::size_t>& types) {
  std::vector<SoftToken> tokens;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].kind == LexemeKind::comment) continue;
    tokens.push_back({types[i], list[i].first_on_line});
    positions.push_back(i);
  }
  const std::vector<bool> names = names_among_soft_keywords(tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (names[i]) list[positions[i]].kind = LexemeKind::name;
  }
}

}  // namespace

std::vector<Lexeme> lexemes(std::string_view text) {
  antlr4::ANTLRInputStream input(one_character_per_byte(text));
  Lexer lexer(&input);
  lexer.removeErrorListeners();
  std::vector<Lexeme> list;
  std::vector<std::size_t> types;
  bool first_on_line = true;
  for (;;) {
    const std::unique_ptr<antlr4::Token> token = lexer.nextToken();
    const std::size_t type = token->getType();
    if (type == antlr4::Token::EOF) break;
    if (type == Lexer::NEWLINE) {
      first_on_line = true;
      continue;
    }
    const auto begin = static_cast<std::uint32_t>(token->getStartIndex());
    auto end = static_cast<std::uint32_t>(token->getStopIndex() + 1);
    // of a comment on a line that ends with CRLF
    while (end > begin + 1 && text[end - 1] == '\r') --end;
    list.push_back({kind_of(type), first_on_line, begin, end});
    types.push_back(type);
    first_on_line = false;
  }
  rename_soft_keywords(list, types);
  return list;
}

std::string_view without_blank_end(std::string_view comment) {
  return comment.substr(0, comment.find_last_not_of(" \t\r\v\f") + 1);
}

bool goes_on(std::string_view text) {
  antlr4::ANTLRInputStream input(one_character_per_byte(text));
  Lexer lexer(&input);
  lexer.removeErrorListeners();
  std::int64_t open = 0;
  std::size_t last = Lexer::SEMI;
  bool documents = false;
  for (;;) {
    const std::unique_ptr<antlr4::Token> token = lexer.nextToken();
    const std::size_t type = token->getType();
    if (type == antlr4::Token::EOF) break;
    if (type == Lexer::NEWLINE || type == Lexer::COMMENT) continue;
    documents = type == Lexer::DOC;
    if (documents) continue;
    last = type;
    if (type == Lexer::LPAREN || type == Lexer::LBRACKET || type == Lexer::LBRACE) ++open;
    if (type == Lexer::RPAREN || type == Lexer::RBRACKET || type == Lexer::RBRACE) --open;
  }
  const bool ends = last == Lexer::SEMI || last == Lexer::UNKNOWN ||
                    last == Lexer::UNCLOSED_STRING || last == Lexer::BAD_NUMBER ||
                    can_end_statement(last) || last == Lexer::NAMES;
  return open > 0 || documents || !ends;
}

std::vector<std::string> keywords() {
  antlr4::ANTLRInputStream input;
  const Lexer lexer(&input);
  const antlr4::dfa::Vocabulary& vocabulary = lexer.getVocabulary();
  std::vector<std::string> words;
  for (std::size_t type = Lexer::AND; type < Lexer::PASS; ++type) {
    const std::string quoted(vocabulary.getLiteralName(type));
    words.push_back(quoted.substr(1, quoted.size() - 2));
  }
  std::sort(words.begin(), words.end());
  return words;
}

}  // namespace piper::parse
