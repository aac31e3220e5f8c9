#pragma once
// The statement before the cursor and the blocks around it, from words: half-typed text has both.
//
//   `schedule s(p: axis) { order { rank r in p { repeat le`  ->  body steps, words {repeat}, typed `le`

#include <string_view>
#include <vector>

#include "frontend/lsp/request.h"
#include "frontend/parse/lexemes.h"
#include "frontend/sema/statements.h"

namespace piper::lsp {

struct StatementAt {
  std::string_view source;
  std::vector<parse::Lexeme> words;  // of the statement or item, before the one that is being typed
  SourceRange typed;                 // the word that ends at the cursor; empty: none
  bool in_body = false;              // else among declarations
  bool in_block = false;             // in a block inside the body
  sema::BodySort body{};
  std::string_view item;   // the word that begins the declaration; empty: none
  bool behind_if = false;  // the block of an `if` ended on this line
  bool nowhere = false;    // in a comment, a string or a number

  std::string_view word(std::size_t i) const {
    return source.substr(words[i].begin, words[i].end - words[i].begin);
  }
  std::string_view first() const { return words.empty() ? std::string_view() : word(0); }
  std::string_view last() const {
    return words.empty() ? std::string_view() : word(words.size() - 1);
  }
  /// Whether the statement has that word outside of brackets.
  bool has(std::string_view text) const;
  /// The last word outside of brackets among those.
  std::string_view last_of(std::initializer_list<std::string_view> texts) const;
  /// Whether the cursor follows a value, so that no other one can begin there.
  bool after_value() const;
  /// The position among the words of the innermost bracket that is open; the number of words where
  /// none is.
  std::size_t innermost() const;
  /// How many brackets are open.
  std::size_t depth() const;
  /// Whether the cursor is behind the `=` of a parameter.
  bool in_default() const;
};

StatementAt statement_at(Request& request, std::uint32_t at);

}  // namespace piper::lsp
