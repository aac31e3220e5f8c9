#pragma once
// Source text of parts of a statement, found from the positions of raw tokens.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/parse/raw_token.h"

namespace piper::parse {

/// Whether the token exists and continues the line of the one before it.
inline bool stands_on_line(const RawToken* token) {
  return token != nullptr && !token->first_on_line;
}

/// Refers to the tokens and the text, which must outlive it; the tokens may change between calls.
class StatementText {
 public:
  StatementText(const RawTokens& tokens, std::string_view text) : tokens_(tokens), text_(text) {}

  /// The token at a position; null after the last one.
  const RawToken* at(std::size_t position) const {
    return position < tokens_.size() ? &tokens_[position] : nullptr;
  }
  std::string_view text(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }

  /// The text from a token to the end of its statement on its line, without a comment; empty if the
  /// token begins a line or does not exist.
  std::string_view statement_from(std::size_t position) const;

  /// The path of a `use` that begins with a token: its dotted names, for the library also the
  /// imported name, which is a file there, or the names of a file in quotes; `lib.mine` if it is no
  /// path.
  std::string path_from(std::size_t position) const;

  /// The text from a token to the end of its element of an index or an argument list, on its line;
  /// empty if the element ends before the token.
  std::string_view element_from(std::size_t position) const;

  /// The position of the bracket that closes the one at `open`, on its line; 0: none.
  std::size_t closing_bracket(std::size_t open) const;

  /// The positions of tokens of that type between two brackets, without nested ones.
  std::vector<std::size_t> find_between(std::size_t open, std::size_t close,
                                        std::size_t type) const;

  /// The text from token `first` to the one before `end`; empty if there is none.
  std::string between(std::size_t first, std::size_t end) const;

 private:
  const RawTokens& tokens_;
  std::string_view text_;
};

}  // namespace piper::parse
