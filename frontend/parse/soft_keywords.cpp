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

}  // namespace

std::vector<bool> names_among_soft_keywords(const std::vector<SoftToken>& tokens) {
  std::vector<bool> result(tokens.size(), false);
  std::size_t depth = 0;  // of `{`
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].type == Lexer::LBRACE) ++depth;
    if (tokens[i].type == Lexer::RBRACE && depth > 0) --depth;
    if (tokens[i].type != Lexer::NAMES) continue;
    const Around around(tokens, i);
    const bool named = (around.type(1) == Lexer::NAME || around.type(1) == Lexer::NAMES) &&
                       around.on_this_line(1) &&
                       (around.type(2) == Lexer::LBRACE || !around.on_this_line(2));
    const bool lacks_name = depth == 0 && around.type(1) == Lexer::LBRACE;
    result[i] = !around.begins_statement() || (!named && !lacks_name);
  }
  return result;
}

}  // namespace piper::parse
