#pragma once
// A program in the layout of the project.
//
//   format("let  x=1\n")  ->  "let x = 1\n"
//
// What a line holds is the author's choice, as long as it fits; how it is written is not: indentation by blocks, one way to write blanks, one blank line at
// most, and columns where neighbours read as a table (settings, `place`, `cursor`, `repeat`, `at`, comments behind). A line past kWidth columns is broken, in
// the outermost brackets that help. Blanks around `*`, `/` and `%` stay as written, both or none.
//
// Guarantees: idempotent; the same tokens in the same order, but for a `;` that becomes a line end, so the same program; every comment stays with its
// token. A declaration with mistakes of syntax is left as it is, but for line ends: all are those of the first line.

#include <string>
#include <string_view>

namespace piper::format {

inline constexpr std::size_t kWidth = 130;

std::string format(std::string_view text);

}  // namespace piper::format
