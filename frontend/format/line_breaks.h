#pragma once
// Tokens of a text and where the lines of the result begin.

#include <string_view>
#include <vector>

#include "frontend/parse/lexemes.h"

namespace piper::format {

/// A token of the result.
struct Word {
  std::string_view text;
  parse::LexemeKind kind{};
  std::uint32_t begin = 0;
  bool breaks = false;        // a line begins with it
  bool blank_before = false;  // and a blank line precedes it
  bool spaced = false;        // of `*`, `/`, `%`: the author put blanks around it
  std::size_t partner = 0;    // of a bracket: the other one; itself where there is none
  bool is(std::string_view word) const { return text == word; }
};

/// The tokens with the breaks of the author, as far as blocks allow them.
std::vector<Word> words_of(std::string_view text);

/// Whether a statement can end after the word.
bool can_end(const Word& word);

/// One blank between the two, or none.
bool has_blank(const std::vector<Word>& words, std::size_t left);

/// Puts the contents of the block that begins at `open` on lines of their own; a `;` between them
/// is removed.
void open_up(std::vector<Word>& words, std::size_t open);

/// Each bracket gets its partner, by position.
void match_brackets(std::vector<Word>& words);

}  // namespace piper::format
