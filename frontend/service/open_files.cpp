#include "frontend/service/open_files.h"

#include <filesystem>

namespace piper::service {

std::string normal_path(std::string_view path) { return std::filesystem::path(path).lexically_normal().generic_string(); }

source::ReadResult OpenFiles::read(std::string_view path, std::uint64_t limit) const {
  const std::string normal = normal_path(path);
  {
    const std::lock_guard lock(asked_->mutex);
    asked_->paths.insert(normal);
  }
  const auto open = texts_.find(normal);
  if (open == texts_.end()) return disk_->read(path, limit);
  if (open->second->size() > limit) return {std::nullopt, "", open->second->size()};
  return {*open->second, "", 0};
}

bool OpenFiles::may_read(std::string_view path) const {
  if (!asked_->ended) return true;
  const std::lock_guard lock(asked_->mutex);
  return asked_->paths.contains(normal_path(path));
}

}  // namespace piper::service
