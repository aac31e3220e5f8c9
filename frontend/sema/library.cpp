#include <llvm/Support/Casting.h>

#include <algorithm>

#include "embedded/standard_library.h"
#include "frontend/sema/program.h"
#include "ir/diagnostics/diagnostics.h"

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
    if (const std::optional<FileId> known = files.find(shown);
        known && files.has_text(*known) && files.is_library(*known))
      return known;
    return files.add(shown, std::string(file.text), true);
  }
  return std::nullopt;
}

bool is_library_names(std::string_view module_name) {
  return module_name.starts_with("std.names.");
}

std::vector<std::string> library_modules() {
  std::vector<std::string> names;
  for (const embedded::File& file : embedded::standard_library())
    names.push_back(module_name(file.path));
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> library_modules(std::string_view item) {
  std::vector<std::string> names;
  for (const embedded::File& file : embedded::standard_library()) {
    const std::string name = module_name(file.path);
    const std::string declared =
        "\n" + std::string(item) + " " + name.substr(name.rfind('.') + 1) + "(";
    if (file.text.find(declared) != std::string_view::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Edit use_line(const ast::Module& module, std::string_view name) {
  const ast::Item* last = nullptr;
  for (const ast::Item* item : module.items) {
    if (llvm::isa<ast::UseItem>(item)) last = item;
  }
  const std::string line = "use " + std::string(name);
  if (last != nullptr) return {{module.file, last->range.end, last->range.end}, "\n" + line};
  // Comments at the begin of a file stay there, unless they are those of a declaration.
  const std::uint32_t begin = module.items.empty() || !module.items.front()->doc.empty()
                                  ? 0
                                  : module.items.front()->range.begin;
  return {{module.file, begin, begin}, line + "\n"};
}

}  // namespace piper::sema
