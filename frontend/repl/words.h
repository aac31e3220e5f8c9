#pragma once
// The words after a command: `zbv p=4 m=8`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/lower/lower.h"

namespace piper::repl {

struct Words {
  std::vector<std::string> plain;       // `zbv`; `"a file"` is one word
  std::vector<lower::Override> values;  // `p=4`

  std::string first() const { return plain.empty() ? "" : plain.front(); }
};

/// Nothing, and an `error`, if a quote or a bracket is not closed.
std::optional<Words> split_words(std::string_view text, std::string& error);

/// `p=4 m=8`
std::string text_of(const std::vector<lower::Override>& values);

}  // namespace piper::repl
