#include <algorithm>

#include "embedded/standard_library.h"
#include "frontend/sema/program.h"

namespace piper::sema {

namespace {

/// `schedules/zbv.pipe` to `std.schedules.zbv`.
std::string module_name(std::string_view path) {
  std::string name = "std." + std::string(path.substr(0, path.rfind('.')));
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

}  // namespace

std::optional<FileId> open_library(std::string_view name, SourceTable& files) {
  for (const embedded::File& file : embedded::standard_library()) {
    if (module_name(file.path) != name) continue;
    const std::string shown = "std/" + std::string(file.path);
    if (const std::optional<FileId> known = files.find(shown); known && files.has_text(*known) && files.is_library(*known)) return known;
    return files.add(shown, std::string(file.text), true);
  }
  return std::nullopt;
}

std::vector<std::string> library_modules() {
  std::vector<std::string> names;
  for (const embedded::File& file : embedded::standard_library()) names.push_back(module_name(file.path));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace piper::sema
