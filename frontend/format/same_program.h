#pragma once
// Whether two texts are one program in two layouts. `format` guarantees it; code that writes its
// result checks it first.
//
//   if (const std::optional<std::string> text = checked_format(before, file, sink)) write(*text);

#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostics.h"

namespace piper::format {

/// The same syntax tree, and the same comments at the same tokens. Blanks at the end of a comment
/// do not count. Texts with mistakes of syntax have trees, too.
bool same_program(std::string_view before, std::string_view after);

/// Reports P6045 at `file` and returns false if `after` is not the program of `before`.
bool keeps_program(std::string_view before, std::string_view after, FileId file,
                   DiagnosticSink& sink);

/// `format(text)`, or nothing and P6045 if that would be another program, which is a bug of the
/// formatter.
std::optional<std::string> checked_format(std::string_view text, FileId file, DiagnosticSink& sink);

}  // namespace piper::format
