#include "frontend/service/open_files.h"

#include <filesystem>

#include "llvm/Support/xxhash.h"

namespace piper::service {

std::string normal_path(std::string_view path) {
  return std::filesystem::path(path).lexically_normal().generic_string();
}

namespace {

/// Tells apart two texts of a file, and that it cannot be read.
std::uint64_t digest(const source::ReadResult& found) {
  return found.text ? llvm::xxh3_64bits(*found.text)
                    : llvm::xxh3_64bits(found.error) + found.too_large;
}

}  // namespace

source::ReadResult OpenFiles::read(std::string_view path, std::uint64_t limit) const {
  const std::string normal = normal_path(path);
  const auto open = texts_.find(normal);
  if (open == texts_.end()) {
    source::ReadResult found = disk_->read(path, limit);
    const std::lock_guard lock(asked_->mutex);
    asked_->paths[normal] = digest(found);
    return found;
  }
  {
    const std::lock_guard lock(asked_->mutex);
    asked_->paths[normal] = 0;
  }
  if (open->second->size() > limit) return {std::nullopt, "", open->second->size()};
  return {*open->second, "", 0};
}

bool OpenFiles::may_read(std::string_view path) const {
  if (!asked_->ended) return true;
  const std::lock_guard lock(asked_->mutex);
  return asked_->paths.contains(normal_path(path));
}

std::vector<std::string> OpenFiles::changed_on_disk() const {
  std::map<std::string, std::uint64_t, std::less<>> asked;
  {
    const std::lock_guard lock(asked_->mutex);
    asked = asked_->paths;
  }
  std::vector<std::string> changed;
  for (const auto& [path, before] : asked) {
    if (!texts_.contains(path) && digest(disk_->read(path, source::kMaxFileSize)) != before)
      changed.push_back(path);
  }
  return changed;
}

}  // namespace piper::service
