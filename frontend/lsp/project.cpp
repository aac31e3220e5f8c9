#include "frontend/lsp/project.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "frontend/lsp/protocol.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

namespace piper::lsp {

namespace {

/// Folders with more than that are no project of this language.
constexpr std::size_t kMaxFiles = 1000, kMaxEntries = 50000;

}  // namespace

void Project::open(std::string_view uri, std::int64_t version, std::string text) {
  const std::string path = path_of(uri);
  const std::lock_guard lock(mutex_);
  open_[path] = {path, std::string(uri), version};
  lanes_[0].open(path, text);
  lanes_[1].open(path, std::move(text));
}

bool Project::edit(std::string_view uri, std::int64_t version,
                   std::span<const service::TextEdit> edits, ColumnUnit unit) {
  const std::string path = path_of(uri);
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(path);
  if (found == open_.end()) return false;
  found->second.version = version;
  lanes_[0].edit(path, edits, unit);
  return lanes_[1].edit(path, edits, unit);
}

bool Project::edit(std::string_view uri, std::int64_t version, std::string text) {
  const std::string path = path_of(uri);
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(path);
  if (found == open_.end()) return false;
  found->second.version = version;
  lanes_[0].edit(path, text);
  return lanes_[1].edit(path, std::move(text));
}

bool Project::close(std::string_view uri) {
  const std::string path = path_of(uri);
  const std::lock_guard lock(mutex_);
  if (const auto known = found_.find(path); known != found_.end()) found_.erase(known);
  lanes_[0].close(path);
  lanes_[1].close(path);
  return open_.erase(path) > 0;
}

std::set<std::string> Project::changed_on_disk() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> changed = lanes_[0].changed_on_disk();
  changed.merge(lanes_[1].changed_on_disk());
  return changed;
}

void Project::changed_on_disk(std::string_view path) {
  const std::lock_guard lock(mutex_);
  if (open_.contains(path)) return;
  for (service::Workspace& lane : lanes_) lane.changed_on_disk(path);
}

bool Project::choose(service::Choices choices) {
  const std::lock_guard lock(mutex_);
  if (choices == choices_) return false;
  for (service::Workspace& lane : lanes_) lane.choose(choices);
  choices_ = std::move(choices);
  return true;
}

std::string Project::chosen_train() const {
  const std::lock_guard lock(mutex_);
  return choices_.train;
}

void Project::set_folders(std::vector<std::string> folders) {
  const std::lock_guard lock(mutex_);
  folders_ = std::move(folders);
}

std::vector<OpenFile> Project::open_files() const {
  const std::lock_guard lock(mutex_);
  std::vector<OpenFile> files;
  for (const auto& [path, file] : open_) files.push_back(file);
  return files;
}

std::optional<OpenFile> Project::find(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(path);
  return found != open_.end() ? std::optional(found->second) : std::nullopt;
}

std::unique_ptr<service::Workspace> Project::with_texts(
    const std::map<std::string, std::string>& texts) const {
  const std::lock_guard lock(mutex_);
  auto trial = std::make_unique<service::Workspace>(lanes_[0]);
  for (const auto& [path, text] : texts) trial->open(path, text);
  return trial;
}

std::shared_ptr<service::Document> Project::document(Lane lane, std::string_view path) {
  const std::lock_guard lock(mutex_);
  return lanes_[static_cast<std::size_t>(lane)].document(path);
}

bool Project::is_newest(Lane lane, const service::Document& document) {
  const std::lock_guard lock(mutex_);
  return lanes_[static_cast<std::size_t>(lane)].document(document.path()).get() == &document;
}

std::vector<std::string> Project::paths() const {
  std::set<std::string> paths;
  std::vector<std::string> folders;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, file] : open_) paths.insert(path);
    folders = folders_;
  }
  namespace fs = std::filesystem;
  std::size_t entries = 0;
  for (const std::string& folder : folders) {
    std::error_code error;
    auto entry = fs::recursive_directory_iterator(
        folder, fs::directory_options::skip_permission_denied, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (++entries > kMaxEntries || paths.size() > kMaxFiles) return {paths.begin(), paths.end()};
      const std::string name = entry->path().filename().string();
      std::error_code unread;
      if (entry->is_directory(unread)) {
        if (name.starts_with('.') || name == "build" || name == "node_modules")
          entry.disable_recursion_pending();
      } else if (name.ends_with(".pipe")) {
        paths.insert(entry->path().lexically_normal().generic_string());
      }
    }
  }
  return {paths.begin(), paths.end()};
}

void Project::set_found(const std::string& path, std::vector<Found> found) {
  const std::lock_guard lock(mutex_);
  found_[path] = std::move(found);
}

std::vector<Found> Project::found(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  const auto known = found_.find(path);
  return known != found_.end() ? known->second : std::vector<Found>();
}

std::string Project::uri(const SourceTable& files, FileId file) const {
  const std::string name(files.name(file));
  if (!files.is_library(file)) {
    const auto open = find(service::normal_path(name));
    return open ? open->uri : uri_of(name);
  }
  // The contents of the file determine its folder, so that each version of the program has its own.
  const std::string_view text = files.text(file);
  const std::string digest =
      llvm::utohexstr(llvm::xxh3_64bits(llvm::StringRef(text.data(), text.size())), true);
  return write("library/" + digest + "/" + name, text, true);
}

std::string Project::show(const std::string& name, const std::string& text) const {
  return write("shown/" + name, text, false);
}

std::string Project::write(const std::string& name, std::string_view text, bool once) const {
  if (cache_folder_.empty()) return {};
  namespace fs = std::filesystem;
  const fs::path path = fs::path(cache_folder_) / name;
  std::error_code error;
  if (once && fs::exists(path, error)) return uri_of(path.generic_string());
  fs::create_directories(path.parent_path(), error);
  static std::atomic<std::uint64_t> count = 0;
  const fs::path aside =
      path.string() + "." + std::to_string(getpid()) + "." + std::to_string(++count);
  std::ofstream(aside, std::ios::binary) << text;
  fs::permissions(aside, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read,
                  error);
  fs::rename(aside, path, error);  // whole or not at all
  return error ? std::string() : uri_of(path.generic_string());
}

}  // namespace piper::lsp
