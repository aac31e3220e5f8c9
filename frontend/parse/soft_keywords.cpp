#include "frontend/parse/soft_keywords.h"

#include "antlr4-runtime.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {

using Lexer = generated::PipeLexer;

/// Reads the tokens around a position.
class Around {
 public:
  Around(const std::vector<SoftToken>& tokens, std::size_t at) : tokens_(tokens), at_(at) {}

  std::size_t type(std::size_t distance) const {
    return at_ + distance < tokens_.size() ? tokens_[at_ + distance].type : antlr4::Token::EOF;
  }
  std::size_t before(std::size_t distance) const {
    return distance <= at_ ? tokens_[at_ - distance].type : antlr4::Token::EOF;
  }
  /// At a `(`: whether `.NAME` is before it.
  bool calls_method() const {
    const std::size_t name = before(1);
    return (name == Lexer::NAME || name == Lexer::ORDER) && before(2) == Lexer::DOT;
  }
  bool on_this_line(std::size_t distance) const {
    return at_ + distance < tokens_.size() && !tokens_[at_ + distance].first_on_line;
  }
  bool begins_statement() const {
    if (at_ == 0 || tokens_[at_].first_on_line) return true;
    const std::size_t before = tokens_[at_ - 1].type;
    return before == Lexer::SEMI || before == Lexer::RBRACE;
  }

 private:
  const std::vector<SoftToken>& tokens_;
  std::size_t at_;
};

/// Inside brackets the head must be complete: the `}` of an item before may be missing.
bool begins_item(const Around& around, std::size_t depth) {
  if (!around.begins_statement()) return false;
  const bool named =
      around.on_this_line(1) && (around.type(1) == Lexer::NAME || around.type(1) == Lexer::NAMES);
  if (depth == 0) return named || around.type(1) == Lexer::LBRACE;
  return named && (around.type(2) == Lexer::LBRACE || !around.on_this_line(2));
}

}  // namespace

std::vector<bool> names_among_soft_keywords(const std::vector<SoftToken>& tokens) {
  std::vector<bool> result(tokens.size(), false);
  std::vector<bool> brackets;  // open ones: whether it holds the arguments of a method
  bool in_use = false;         // the parts of `use a.b` are names of files
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Around around(tokens, i);
    if (around.begins_statement()) in_use = tokens[i].type == Lexer::USE;
    switch (tokens[i].type) {
      case Lexer::LPAREN: brackets.push_back(around.calls_method()); continue;
      case Lexer::LBRACKET:
      case Lexer::LBRACE: brackets.push_back(false); continue;
      case Lexer::RPAREN:
      case Lexer::RBRACKET:
      case Lexer::RBRACE:
        if (!brackets.empty()) brackets.pop_back();
        continue;
      case Lexer::NAMES: result[i] = !begins_item(around, brackets.size()); continue;
      case Lexer::ORDER:
        result[i] = !in_use && around.before(1) == Lexer::DOT && around.on_this_line(0);
        continue;
      case Lexer::ON:
      case Lexer::BY:
        result[i] = !brackets.empty() && brackets.back() && around.type(1) == Lexer::COLON;
        continue;
      default: continue;
    }
  }
  return result;
}

}  // namespace piper::parse
