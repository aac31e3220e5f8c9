#include "frontend/parse/statement_text.h"

#include <algorithm>
#include <cctype>

#include "antlr4-runtime.h"
#include "grammar_generated/PipeLexer.h"

namespace piper::parse {

namespace {

using Lexer = generated::PipeLexer;

/// `"lib/mine.pipe"` as `lib.mine`, if it has that form.
std::string path_of_file(std::string_view file) {
  file = file.substr(1, file.size() - 2);
  if (file.ends_with(".pipe")) file.remove_suffix(5);
  if (file.starts_with("./")) file.remove_prefix(2);
  std::string path(file);
  std::replace(path.begin(), path.end(), '/', '.');
  const bool named = !path.empty() && std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
  return named ? path : "lib.mine";
}

}  // namespace

std::string_view StatementText::statement_from(std::size_t position) const {
  if (!stands_on_line(at(position))) return {};
  std::size_t last = position;
  for (std::size_t i = position; at(i) != nullptr && (i == position || stands_on_line(at(i)));
       ++i) {
    if (tokens_[i].type == Lexer::SEMI || tokens_[i].type == Lexer::RBRACE) break;
    last = i;
  }
  return text_.substr(tokens_[position].begin, tokens_[last].end - tokens_[position].begin);
}

std::string StatementText::path_from(std::size_t position) const {
  std::string path;
  std::size_t i = position;
  if (stands_on_line(at(i)) && tokens_[i].type == Lexer::STRING)
    return path_of_file(text(tokens_[i]));
  for (; stands_on_line(at(i)) &&
         tokens_[i].type == (path.empty() || path.back() == '.' ? Lexer::NAME : Lexer::DOT);
       ++i)
    path += text(tokens_[i]);
  const bool imports = path.starts_with("std.") && stands_on_line(at(i + 1)) &&
                       text(tokens_[i]) == "import" && tokens_[i + 1].type == Lexer::NAME;
  return imports        ? path + "." + std::string(text(tokens_[i + 1]))
         : path.empty() ? "lib.mine"
                        : path;
}

std::string_view StatementText::element_from(std::size_t position) const {
  std::size_t depth = 0, last = position;
  for (std::size_t i = position; at(i) != nullptr && (i == position || stands_on_line(at(i)));
       ++i) {
    const std::size_t type = tokens_[i].type;
    if (depth == 0 && (type == Lexer::RBRACKET || type == Lexer::RPAREN || type == Lexer::COMMA ||
                       type == Lexer::COLON || type == Lexer::SEMI || type == Lexer::LBRACE ||
                       type == Lexer::RBRACE)) {
      if (i == position) return {};
      break;
    }
    if (type == Lexer::LPAREN || type == Lexer::LBRACKET) ++depth;
    if ((type == Lexer::RPAREN || type == Lexer::RBRACKET) && depth > 0) --depth;
    last = i;
  }
  return at(position) == nullptr
             ? std::string_view()
             : text_.substr(tokens_[position].begin, tokens_[last].end - tokens_[position].begin);
}

std::size_t StatementText::closing_bracket(std::size_t open) const {
  std::size_t depth = 0;
  for (std::size_t i = open; at(i) != nullptr && (i == open || !tokens_[i].first_on_line); ++i) {
    if (tokens_[i].type == Lexer::LPAREN || tokens_[i].type == Lexer::LBRACKET) ++depth;
    if ((tokens_[i].type == Lexer::RPAREN || tokens_[i].type == Lexer::RBRACKET) && --depth == 0)
      return i;
  }
  return 0;
}

std::vector<std::size_t> StatementText::find_between(std::size_t open, std::size_t close,
                                                     std::size_t type) const {
  std::vector<std::size_t> found;
  std::size_t depth = 0;
  for (std::size_t i = open + 1; i < close; ++i) {
    if (tokens_[i].type == Lexer::LPAREN || tokens_[i].type == Lexer::LBRACKET) ++depth;
    if (tokens_[i].type == Lexer::RPAREN || tokens_[i].type == Lexer::RBRACKET) --depth;
    if (depth == 0 && tokens_[i].type == type) found.push_back(i);
  }
  return found;
}

std::string StatementText::between(std::size_t first, std::size_t end) const {
  return first < end ? std::string(text_.substr(tokens_[first].begin,
                                                tokens_[end - 1].end - tokens_[first].begin))
                     : std::string();
}

}  // namespace piper::parse
