#include "frontend/tools/input_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "frontend/source/write_file.h"
#include "frontend/tools/arguments.h"

namespace piper::tools {

namespace {

namespace fs = std::filesystem;

/// Whether a folder or one of its subfolders holds the file.
bool holds(const std::string& folder, const std::string& file) {
  std::error_code none;
  const fs::path inside = fs::canonical(file, none), outside = fs::canonical(folder, none);
  return !inside.empty() && !outside.empty() &&
         std::mismatch(outside.begin(), outside.end(), inside.begin(), inside.end()).first ==
             outside.end();
}

}  // namespace

void InputFiles::add(std::string path) {
  if (!path.empty()) files_.push_back(std::move(path));
}

void InputFiles::add_tree(std::string path) {
  std::error_code none;
  (fs::is_directory(path, none) ? folders_ : files_).push_back(std::move(path));
}

void InputFiles::add_named(const Arguments& arguments) {
  std::vector<std::string> named = arguments.positional;
  named.push_back(arguments.machine);
  named.push_back(arguments.program);
  for (const std::string& name : named) {
    add(name);
    if (const std::size_t colon = name.rfind(':'); colon != std::string::npos)
      add(name.substr(0, colon));
  }
  add(arguments.costs_file);
}

void InputFiles::add_data(const directive::Settings& settings) {
  for (const auto* data : {&settings.data, &settings.held_out}) {
    if (!*data || (*data)->path.empty()) continue;
    const std::string& path = (*data)->path;
    add_tree(path);
    if ((*data)->kind != directive::Data::Kind::tokens) continue;
    // An index and its tokens are one text.
    for (const char* partner : {".bin", ".idx"})
      files_.push_back(fs::path(path).replace_extension(partner).string());
  }
  if (settings.init) add_tree(settings.init->path);
}

void InputFiles::add_sources(const SourceTable& sources) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (const FileId file = FileId::at(i); !sources.is_library(file))
      add(std::string(sources.name(file)));
  }
}

bool InputFiles::has(const std::string& path) const {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  return std::any_of(files_.begin(), files_.end(),
                     [&](const std::string& file) { return source::same_file(file, path); }) ||
         std::any_of(folders_.begin(), folders_.end(),
                     [&](const std::string& folder) { return holds(folder, path); });
}

}  // namespace piper::tools
