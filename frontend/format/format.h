#pragma once
// A program in the layout of the project.
//
//   format("let  x=1\n")  ->  "let x = 1\n"
//
// The author chooses the contents of a line, as long as it fits; the formatter chooses the layout:
// indentation by blocks, one way to write blanks, one blank line at most, and columns if neighbours
// form a table (settings, `place`, `cursor`, `repeat`, `at`, comments after code). A line past
// kWidth columns is broken, in the outermost brackets that help. Blanks around `*`, `/` and `%`
// stay as written, both or none.
//
// Guarantees: idempotent; the same tokens in the same order, except that a `;` may become a line
// end, so the same program; every comment stays with its token. A declaration with syntax errors is
// not changed, except that all line ends become those of the first line.

#include <string>
#include <string_view>

namespace piper::format {

inline constexpr std::size_t kWidth = 130;

std::string format(std::string_view text);

}  // namespace piper::format
