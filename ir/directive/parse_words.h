#pragma once
// Small parts of the text of directives and settings: counts, and one of several words.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/directive/numbers.h"
#include "ir/text/text_reader.h"

namespace piper::directive {

/// A number of at most kMaxCounted.
inline std::uint32_t parse_count(TextReader& reader, std::string_view expected,
                                 std::int64_t low = 0) {
  return static_cast<std::uint32_t>(reader.integer(expected, low, kMaxCounted));
}

/// Reports a word that is none of those that are expected.
inline void fail_choice(TextReader& reader, std::string_view expected) {
  const TextReader::Token where = reader.peek();
  if (reader.at_end()) {
    reader.fail(Code::malformed_dag_text, where, "the text ends where {} is expected", expected);
  } else {
    reader.fail(Code::unknown_dag_name, where, "`{}` is not {}", where.text, expected);
  }
}

/// One of `texts`, in the order of the enumerators; otherwise it is reported.
template <typename Enum, typename Text, std::size_t n>
Enum choose(TextReader& reader, std::string_view expected, const Text (&texts)[n]) {
  for (std::size_t i = 0; i < n; ++i) {
    if (reader.accept(texts[i])) return static_cast<Enum>(i);
  }
  fail_choice(reader, expected);
  return {};
}

}  // namespace piper::directive
