#pragma once
// The word that a misspelt one means, among names of inputs, subjects, commands and options. Its
// bound is wider than that of names in a program (ir/diagnostics/suggestion.h): there are only a
// few candidates at a prompt.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace piper {

/// The candidate nearest to `word` by edit distance, if it is near enough to be meant.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// "`a`, `b`"
std::string quoted_list(std::span<const std::string> names);

}  // namespace piper
