#pragma once
// Damages a text at random, token by token, so that much of the result is still meaningful.
//
//   const std::string text = damaged(legal, random, {.edits = 3, .words = {"F", "BW"}});

#include <string>
#include <vector>

#include "tests/support/random_cases.h"

namespace piper::test {

/// Words (letters, digits, `_` and `.`), strings with their quotes, blanks, and single signs;
/// joined they are the text again.
std::vector<std::string> tokens_of(const std::string& text);

struct Damage {
  std::int64_t edits = 3;          // the maximum number of edits; at least one is made
  std::vector<std::string> words;  // inserted beside numbers and tokens of the text itself
  std::size_t begin = 0, end = std::string::npos;  // the range of the text
};
std::string damaged(const std::string& text, Random& random, const Damage& damage);

}  // namespace piper::test
