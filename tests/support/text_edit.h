#pragma once
// A legal text with one fault, written as a change.
//
//   - TEXT      is a line of the text, or else a part of one, exactly once, and is removed
//   + TEXT      put in its place, or on a new line after the line before; if no `+` follows a `-`, the line goes too
//
//   std::string error;
//   const std::string wrong = edited(legal, "- dtype f32\n+ dtype f64\n", error);

#include <string>
#include <string_view>

namespace piper::test {

/// `error` is empty, or names the line that is no edit, or whose text to remove occurs not at all
/// or several times.
std::string edited(std::string text, std::string_view edits, std::string& error);

/// A `.pir` text without its table of locations and the references to it.
std::string without_locations(std::string_view text);

}  // namespace piper::test
