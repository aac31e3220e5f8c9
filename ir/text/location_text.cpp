#include "ir/text/location_text.h"

#include <algorithm>
#include <filesystem>

#include "ir/text/print_text.h"

namespace piper {

namespace {

/// The folder of the program: of the first file that was opened. The names in a `.pir` file are
/// relative to its program already.
std::filesystem::path folder_of_program(const SourceTable& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FileId file = FileId::at(i);
    if (!files.has_text(file) || files.is_library(file)) continue;
    const std::filesystem::path name(files.name(file));
    return name.extension() == ".pir" ? std::filesystem::path() : name.parent_path();
  }
  return {};
}

std::string name_in(const std::filesystem::path& folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  // Empty if only one of the two begins at the root.
  const std::string relative = std::filesystem::path(name).lexically_relative(folder).string();
  return relative.empty() ? std::string(name) : relative;
}

/// `library "std/schedules/gpipe.pipe":4:21-4:42 from "a.pipe":20:5-20:16`, innermost first.
std::string ranges_text(const SourceTable& files, const std::vector<SourceRange>& ranges,
                        const std::filesystem::path& folder) {
  std::string text;
  for (const SourceRange& range : ranges) {
    if (!text.empty()) text += " from ";
    if (!range.valid()) {
      text += "unknown";
      continue;
    }
    const bool library = files.is_library(range.file);
    const std::string_view name = files.name(range.file);
    const LineColumn begin = files.line_column(range.file, range.begin),
                     end = files.line_column(range.file, range.end);
    text += library ? "library " + quoted_text(name) : quoted_text(name_in(folder, name));
    text += ':' + std::to_string(begin.line) + ':' + std::to_string(begin.column);
    text += '-' + std::to_string(end.line) + ':' + std::to_string(end.column);
  }
  return text;
}

}  // namespace

std::string location_text(const LocationTable& table, LocId loc) {
  return "loc(" + ranges_text(table.files(), table.frames(loc), {}) + ")";
}

LocationText::LocationText(const LocationTable& table, LocationForm form)
    : table_(table), form_(form), folder_(folder_of_program(table.files()).string()) {}

/// An entry of the table; empty if no range is in a file.
std::string LocationText::entry(LocId loc) const {
  const std::vector<SourceRange> ranges = table_.frames(loc);
  const bool known = std::any_of(ranges.begin(), ranges.end(),
                                 [](const SourceRange& range) { return range.valid(); });
  return known ? ranges_text(table_.files(), ranges, folder_) : std::string();
}

std::uint32_t LocationText::number_of(const std::string& text) {
  const auto [entry, fresh] =
      numbers_.try_emplace(text, static_cast<std::uint32_t>(entries_.size() + 1));
  if (fresh) entries_.push_back(entry->first());
  return entry->second;
}

void LocationText::print(llvm::raw_ostream& os, LocId loc) {
  if (!loc.valid() || form_ == LocationForm::none) return;
  if (loc.index() >= used_.size()) {
    used_.resize(loc.index() + 1);
    texts_.resize(loc.index() + 1);
  }
  std::string& text = texts_[loc.index()];
  if (!used_[loc.index()]) {
    used_[loc.index()] = true;
    if (form_ == LocationForm::written) {
      text = " " + location_text(table_, loc);
    } else if (const std::string written = entry(loc); !written.empty()) {
      text = " #" + std::to_string(number_of(written));
    }
  }
  os << text;
}

void LocationText::print_table(llvm::raw_ostream& os) const {
  if (entries_.empty()) return;
  os << "locations {\n";
  for (std::size_t i = 0; i < entries_.size(); ++i)
    os << "  " << i + 1 << ' ' << entries_[i] << '\n';
  os << "}\n";
}

}  // namespace piper
