#pragma once
// Divisions of other languages that are comments here.
//
//   let x = a // b     ->   a warning at `//`, hint: write `/`

#include <string_view>

#include "frontend/parse/raw_token.h"
#include "frontend/source/selected_reports.h"

namespace piper::parse {

/// Warns of comments that look like the second operand of a division: behind a value, and with
/// nothing but a number or a name of the text.
void warn_of_divisions(const RawTokens& tokens, std::string_view text, FileId file,
                       SelectedReports& sink);

}  // namespace piper::parse
