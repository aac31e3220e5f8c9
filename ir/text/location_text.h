#pragma once
// Writes the locations of the lines of a text.
//
//   LocationText locations(table);
//   os << "mesh line(pp: 2)";
//   locations.print(os, mesh.loc);     ->  mesh line(pp: 2) #1
//   locations.print_table(os);         ->  locations {
//                                            1 "net.pipe":9:1-9:16
//                                          }

#include <cstdint>
#include <string>
#include <vector>

#include "ir/location.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

namespace piper {

/// `numbered`: references to a table at the end, for text that is read back. `written`:
/// `loc("net.pipe":9:1-9:16)` behind each line, for views.
enum class LocationForm : std::uint8_t { none, written, numbered };

/// `loc("a.pipe":3:5-3:9)` of a valid location, and with calls, innermost first:
/// `loc(library "std/schedules/gpipe.pipe":4:21-4:42 from "a.pipe":20:5-20:16)`.
std::string location_text(const LocationTable& table, LocId loc);

/// Locations have numbers in the order of their first use, and equal ones have one number. Names of
/// files are relative to the folder of the program, so that equal programs have equal texts wherever
/// they are.
class LocationText {
 public:
  explicit LocationText(const LocationTable& table, LocationForm form = LocationForm::numbered);

  /// Writes a space and the location; nothing for an invalid one.
  void print(llvm::raw_ostream& os, LocId loc);
  /// Writes the table if there is a reference to it.
  void print_table(llvm::raw_ostream& os) const;

 private:
  std::string entry(LocId loc) const;
  std::uint32_t number_of(const std::string& text);

  const LocationTable& table_;
  const LocationForm form_;
  const std::string folder_;        // of the program
  std::vector<std::string> texts_;  // per LocId, once it is used: what stands behind a line
  std::vector<bool> used_;          // per LocId
  llvm::StringMap<std::uint32_t> numbers_;
  std::vector<llvm::StringRef> entries_;  // per number less 1
};

}  // namespace piper
