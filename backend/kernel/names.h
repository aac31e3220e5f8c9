#pragma once
// Names of generated C++ that are made of names of a program.
//
// Guarantees: such a name is no word of C++, nothing that the two included headers declare or define, and nothing that the printers name themselves: a
// name that would be one of those ends in an underscore, which none of them does. What the printers name outside of the scope at hand has a form of its own,
// what they name in it is given to the scope. tests/tools/generated_names_test.cpp asks the compiler what the headers have.
//
//   NameScope names{"api", "rank"};
//   names.add("block.0.up");  // block_0_up
//   names.add("int");         // int_
//   names.add("api");         // api_2

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace piper::backend {

/// `block.0.up` -> `block_0_up`.
std::string identifier(std::string_view text);

/// A string literal of any bytes.
std::string quoted(std::string_view text);

/// Text for a line comment: one line, no continuation.
std::string comment(std::string_view text);

/// The names of one scope: all different.
class NameScope {
 public:
  NameScope(std::initializer_list<std::string_view> own = {}) : names_(own.begin(), own.end()) {}

  /// A name that the printer gives itself.
  void add_own(const std::string& name) { names_.insert(name); }
  bool has(std::string_view text) const { return names_.contains(identifier(text)); }
  /// The identifier of the text, with a number if the scope has it.
  std::string add(std::string_view text);

 private:
  std::set<std::string> names_;
  std::map<std::string, int> numbers_;  // the last one given, by identifier
};

}  // namespace piper::backend
