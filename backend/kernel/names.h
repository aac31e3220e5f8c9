#pragma once
// Identifiers of generated C++ made from names of a program.
//
// Guarantees: such a name is no C++ keyword, no name of the two included headers, and no name of
// the printers: a colliding name gets a trailing underscore, which none of them has. Names of the
// printers outside the current scope have a form of their own; those inside are added to the scope.
// tests/tools/generated_names_test.cpp gets the names of the headers from the compiler.
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
  NameScope(std::initializer_list<std::string_view> reserved = {})
      : names_(reserved.begin(), reserved.end()) {}

  /// Reserves a name of the printer.
  void add_own(const std::string& name) { names_.insert(name); }
  bool has(std::string_view text) const { return names_.contains(identifier(text)); }
  /// The identifier for the text, with a number if the scope has it already.
  std::string add(std::string_view text);

 private:
  std::set<std::string> names_;
  std::map<std::string, int> numbers_;  // the last number, by identifier
};

}  // namespace piper::backend
