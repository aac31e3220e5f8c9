#pragma once
// A legal text with one thing wrong, written as what changes.
//
//   - TEXT      is a line of the text, or else a part of one, exactly once, and is taken out
//   + TEXT      put in its place, or on a line of its own behind the line before; where no `+` follows a `-`, the line goes too
//
//   std::string error;
//   const std::string wrong = edited(legal, "- dtype f32\n+ dtype f64\n", error);

#include <string>
#include <string_view>

namespace piper::test {

/// `error` is empty, or says which line is no edit, or takes out what stands nowhere or in several places.
std::string edited(std::string text, std::string_view edits, std::string& error);

}  // namespace piper::test
