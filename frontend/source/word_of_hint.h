#pragma once
// The text that a hint says to write, if the hint has no conditions.
//
//   word_of_hint("write `true`")                        // true
//   word_of_hint("a range leaves its end out: write `..4`")  // ..4
//   word_of_hint("write `f64` for elements of tensors") // nothing: it depends

#include <optional>
#include <string_view>

namespace piper {

inline std::optional<std::string_view> word_of_hint(std::string_view hint) {
  constexpr std::string_view kBefore = "write `";
  const std::size_t reason = hint.find(": ");
  if (reason != std::string_view::npos && hint.find('`') > reason) hint.remove_prefix(reason + 2);
  if (!hint.starts_with(kBefore) || !hint.ends_with('`')) return std::nullopt;
  const std::string_view word = hint.substr(kBefore.size(), hint.size() - kBefore.size() - 1);
  if (word.empty() || word.find('`') != std::string_view::npos) return std::nullopt;
  return word;
}

}  // namespace piper
