#pragma once
// The sort of a typed line.
//
//   read_entry("schedule s(p: axis) { place model on p[0] }")  ->  item `s`
//   read_entry("place model on p[0]")                          ->  misplaced, `a schedule or train`

#include <cstdint>
#include <string>
#include <string_view>

namespace piper::repl {

enum class EntrySort : std::uint8_t {
  nothing,
  command,
  item,
  binding,
  assignment,
  expression,
  misplaced
};

struct Entry {
  EntrySort sort = EntrySort::nothing;
  std::string text = {};  // without blanks around it
  std::string word = {};  // item, binding, misplaced: its keyword or pass letter
  std::string name = {};  // item, binding, assignment: the declared name; for a `use` its path
  std::string_view belongs = {};  // misplaced: the item that may contain it
};

Entry read_entry(std::string_view text);

}  // namespace piper::repl
