#include "tests/support/text_edit.h"

#include <sstream>

namespace piper::test {
namespace {

/// The position of `what` as a whole line, or else as a part of one; exactly once, or else npos.
std::size_t place_of(const std::string& text, const std::string& what) {
  const std::string lines = "\n" + text + "\n", line = "\n" + what + "\n";
  const bool whole = lines.find(line) != std::string::npos;
  const std::string& among = whole ? lines : text;
  const std::string& sought = whole ? line : what;
  const std::size_t at = among.find(sought);
  return at == among.rfind(sought) ? at : std::string::npos;
}

}  // namespace

std::string edited(std::string text, std::string_view edits, std::string& error) {
  std::size_t at = 0;
  bool deleting = false;
  const auto finish = [&] {
    if (deleting && at < text.size() && text[at] == '\n') text.erase(at, 1);
    deleting = false;
  };
  std::istringstream lines{std::string(edits)};
  for (std::string line; std::getline(lines, line);) {
    const std::string what = line.size() > 2 ? line.substr(2) : std::string();
    if (line.starts_with("- ")) {
      finish();
      at = place_of(text, what);
      if (at == std::string::npos) {
        error = "stands nowhere, or in several places: " + what;
        return text;
      }
      text.erase(at, what.size());
      deleting = true;
    } else if (line.starts_with("+ ")) {
      const std::string added = (deleting ? "" : "\n") + what;
      text.insert(at, added);
      at += added.size();
      deleting = false;
    } else {
      error = "not an edit: " + line;
      return text;
    }
  }
  finish();
  return text;
}

std::string without_locations(std::string_view text) {
  std::string bare(text.substr(0, text.rfind("\nlocations {\n") + 1));
  if (bare.empty()) bare = text;
  for (std::size_t at = bare.find(" #"); at != std::string::npos; at = bare.find(" #", at))
    bare.erase(at, bare.find_first_not_of("0123456789", at + 2) - at);
  return bare;
}

}  // namespace piper::test
