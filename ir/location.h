#pragma once
// Source locations: files, byte ranges in them, and interned locations with their call chain.
//
// Guarantees: a `LocId` costs 4 bytes and equal locations have equal ids within one table. The
// primary line of a location is the innermost one outside the standard library. `ir/text` writes and
// reads locations, also without the source files, as from a `.pir` file on another machine.
//
//   LocationTable table;
//   FileId file = table.files().add("a.pipe", "place stage[0] on p[0]\n");
//   LocId loc = table.intern({file, 6, 14});
//   table.files().line_column(file, 6)  ->  line 1, column 7

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/ids.h"

namespace piper {

using FileId = Id<struct FileTag>;
using LocId = Id<struct LocTag>;

/// Bytes [begin, end) of a file. An invalid file means "no place in any file" (command line,
/// environment).
struct SourceRange {
  FileId file;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool valid() const { return file.valid(); }
  friend auto operator<=>(const SourceRange&, const SourceRange&) = default;
};

/// The smallest range that covers both; an invalid one is ignored. Both must lie in one file.
SourceRange cover(SourceRange a, SourceRange b);

/// The unit of columns. Messages, JSON and `.pir` files use code points, which are the default;
/// editors count UTF-16 units or bytes.
enum class ColumnUnit : std::uint8_t { byte, utf16, code_point };

/// Lines and columns count from 1; a column counts Unicode code points by default. A tab is one in
/// every unit, and so is the CR of a CRLF; a byte order mark is none.
struct LineColumn {
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  friend auto operator<=>(const LineColumn&, const LineColumn&) = default;
};

/// The files of one compilation, by name. A file has a text, or only a name and positions. Ranges
/// mean the same in both, because a file without text assigns one offset to each position that it
/// was asked for.
class SourceTable {
 public:
  /// Adds a file; the name is shown to the user. `text` may hold any bytes, also invalid UTF-8.
  FileId add(std::string name, std::string text, bool library = false);
  /// The file of that name, added without text if it is unknown.
  FileId add_without_text(std::string_view name, bool library = false);
  std::optional<FileId> find(std::string_view name) const;

  std::size_t size() const { return files_.size(); }
  std::string_view name(FileId file) const { return files_[file.index()].name; }
  bool has_text(FileId file) const { return files_[file.index()].has_text; }
  std::string_view text(FileId file) const { return files_[file.index()].text; }
  /// True for files of the standard library: they are related locations, never primary ones.
  bool is_library(FileId file) const { return files_[file.index()].library; }

  /// The position of a byte; offsets beyond the end give the end of the text. A file without text
  /// supports code points only.
  LineColumn line_column(FileId file, std::uint32_t offset,
                         ColumnUnit unit = ColumnUnit::code_point) const;
  /// The offset of a position: of the nearest byte in a file with text, else of the position
  /// itself.
  std::uint32_t offset(FileId file, LineColumn position);
  /// The same for a file with text, in any unit; columns beyond the end of the line give its end,
  /// which is before its line break.
  std::uint32_t offset(FileId file, LineColumn position, ColumnUnit unit) const;
  /// Line `line` without its line break; empty if the file has no text or no such line.
  std::string_view line_text(FileId file, std::uint32_t line) const;
  /// The number of lines; a text that ends in a line break has one more, empty line.
  std::uint32_t line_count(FileId file) const;

 private:
  struct File {
    std::string name;
    std::string text;
    bool has_text = false;
    bool library = false;
    std::vector<std::uint32_t> line_starts;               // with text
    std::vector<LineColumn> positions;                    // without text: offset -> position
    std::map<LineColumn, std::uint32_t> position_offset;  // without text: position -> offset
  };
  std::deque<File> files_;  // addresses are stable, so that views of names and texts stay valid
  std::unordered_map<std::string, FileId> by_name_;
};

/// Interned locations. A location is a range and the location of its caller.
class LocationTable {
 public:
  SourceTable& files() { return files_; }
  const SourceTable& files() const { return files_; }

  /// The location `range`, reached from `caller` (invalid: not inside any call).
  LocId intern(SourceRange range, LocId caller = {});

  SourceRange range(LocId loc) const { return entries_[loc.index()].range; }
  LocId caller(LocId loc) const { return entries_[loc.index()].caller; }
  /// All ranges, innermost first. Empty for an invalid id.
  std::vector<SourceRange> frames(LocId loc) const;
  /// The innermost range outside the standard library, else the innermost one; invalid for an
  /// invalid id.
  SourceRange primary(LocId loc) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    SourceRange range;
    LocId caller;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  SourceTable files_;
  std::vector<Entry> entries_;
  std::map<Entry, LocId> ids_;
};

}  // namespace piper
