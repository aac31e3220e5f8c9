#include "ir/location.h"

#include <algorithm>

namespace piper {

SourceRange cover(SourceRange a, SourceRange b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

namespace {

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The end of the code point (or invalid byte) that begins at `at`; the next column may begin
/// there.
std::uint32_t end_of_column(std::string_view text, std::uint32_t at, ColumnUnit unit) {
  ++at;
  while (unit != ColumnUnit::byte && at < text.size() && continues_code_point(text[at])) ++at;
  return at;
}

/// Code points beyond 16 bits, four bytes of UTF-8, are two units of UTF-16; an invalid byte counts
/// as one.
std::uint32_t width_of_column(std::string_view text, std::uint32_t at, ColumnUnit unit) {
  return unit == ColumnUnit::utf16 && (static_cast<unsigned char>(text[at]) & 0xF8) == 0xF0 ? 2 : 1;
}

}  // namespace

FileId SourceTable::add(std::string name, std::string text, bool library) {
  FileId id = FileId::at(files_.size());
  File& file = files_.emplace_back();
  file.name = std::move(name);
  file.text = std::move(text);
  file.has_text = true;
  file.library = library;
  file.line_starts.push_back(0);
  for (std::size_t i = 0; i < file.text.size(); ++i) {
    if (file.text[i] == '\n') file.line_starts.push_back(static_cast<std::uint32_t>(i + 1));
  }
  by_name_.insert_or_assign(file.name, id);
  return id;
}

FileId SourceTable::add_without_text(std::string_view name, bool library) {
  if (std::optional<FileId> known = find(name)) return *known;
  FileId id = FileId::at(files_.size());
  File& file = files_.emplace_back();
  file.name = name;
  file.library = library;
  by_name_.emplace(file.name, id);
  return id;
}

std::optional<FileId> SourceTable::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

LineColumn SourceTable::line_column(FileId id, std::uint32_t offset, ColumnUnit unit) const {
  const File& file = files_[id.index()];
  if (!file.has_text) return offset < file.positions.size() ? file.positions[offset] : LineColumn{};
  offset = std::min(offset, static_cast<std::uint32_t>(file.text.size()));
  auto after = std::upper_bound(file.line_starts.begin(), file.line_starts.end(), offset);
  std::uint32_t start = *(after - 1);
  auto line = static_cast<std::uint32_t>(after - file.line_starts.begin());
  std::uint32_t column = 1;
  // A byte order mark is not a character of the first line.
  if (line == 1 && file.text.starts_with("\xEF\xBB\xBF")) start = std::min(offset, 3u);
  while (start < offset) {
    const std::uint32_t next = end_of_column(file.text, start, unit);
    if (next > offset) break;
    column += width_of_column(file.text, start, unit);
    start = next;
  }
  return {line, column};
}

std::uint32_t SourceTable::offset(FileId id, LineColumn position) {
  File& file = files_[id.index()];
  if (!file.has_text) {
    auto [entry, inserted] = file.position_offset.try_emplace(
        position, static_cast<std::uint32_t>(file.positions.size()));
    if (inserted) file.positions.push_back(position);
    return entry->second;
  }
  return offset(id, position, ColumnUnit::code_point);
}

std::uint32_t SourceTable::offset(FileId id, LineColumn position, ColumnUnit unit) const {
  const File& file = files_[id.index()];
  if (position.line == 0 || file.line_starts.empty()) return 0;
  if (position.line > file.line_starts.size()) return static_cast<std::uint32_t>(file.text.size());
  std::uint32_t at = file.line_starts[position.line - 1];
  std::uint32_t end = static_cast<std::uint32_t>(file.text.size());
  if (position.line < file.line_starts.size()) end = file.line_starts[position.line] - 1;
  if (position.line == 1 && file.text.starts_with("\xEF\xBB\xBF")) at = 3;
  if (end > at && end < file.text.size() && file.text[end - 1] == '\r') --end;
  for (std::uint32_t column = 1; column < position.column && at < end;) {
    column += width_of_column(file.text, at, unit);
    if (column > position.column) break;  // inside a pair of units
    at = std::min(end_of_column(file.text, at, unit), end);
  }
  return at;
}

std::string_view SourceTable::line_text(FileId id, std::uint32_t line) const {
  const File& file = files_[id.index()];
  if (line == 0 || line > file.line_starts.size()) return {};
  std::string_view rest = std::string_view(file.text).substr(file.line_starts[line - 1]);
  std::string_view text = rest.substr(0, rest.find('\n'));
  if (line == 1 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::uint32_t SourceTable::line_count(FileId id) const {
  return static_cast<std::uint32_t>(files_[id.index()].line_starts.size());
}

LocId LocationTable::intern(SourceRange range, LocId caller) {
  auto [entry, inserted] = ids_.try_emplace(Entry{range, caller}, LocId::at(entries_.size()));
  if (inserted) entries_.push_back(entry->first);
  return entry->second;
}

std::vector<SourceRange> LocationTable::frames(LocId loc) const {
  std::vector<SourceRange> result;
  for (; loc.valid(); loc = caller(loc)) result.push_back(range(loc));
  return result;
}

SourceRange LocationTable::primary(LocId loc) const {
  if (!loc.valid()) return {};
  SourceRange innermost = range(loc);
  for (; loc.valid(); loc = caller(loc)) {
    SourceRange here = range(loc);
    if (here.valid() && !files_.is_library(here.file)) return here;
  }
  return innermost;
}

}  // namespace piper
