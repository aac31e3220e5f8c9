#include "backend/jit/trust.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

namespace piper::backend {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxLinks = 40;  // the limit of the kernel

std::string user(uid_t id) {
  char text[1024];
  passwd entry{}, *found = nullptr;
  if (getpwuid_r(id, &entry, text, sizeof text, &found) == 0 && found != nullptr)
    return std::string("`") + entry.pw_name + "`";
  return "user " + std::to_string(id);
}

Distrust owner(const std::string& path, uid_t id) {
  return {path, "belongs to " + user(id) + ", and this process runs as " + user(geteuid()), false};
}

std::optional<Distrust> writers(const std::string& path, const struct stat& status) {
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return std::nullopt;
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 07777));
  return Distrust{path,
                  std::string("can be written by ") +
                      ((status.st_mode & S_IWOTH) != 0 ? "all users" : "its group") + " (mode " +
                      mode + ")",
                  true};
}

Distrust unreadable(const std::string& path) {
  return {path, std::string("cannot be examined: ") + std::strerror(errno), false};
}

/// The reason why a folder or link above a folder is not trusted; nothing if it is.
std::optional<Distrust> distrust_on_the_way(const std::string& path, const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != geteuid()) return owner(path, status.st_uid);
  if (S_ISLNK(status.st_mode) || (status.st_mode & S_ISVTX) != 0) return std::nullopt;
  return writers(path, status);
}

}  // namespace

std::optional<Distrust> distrust_of_folder(const std::string& folder) {
  std::error_code error;
  const fs::path whole = fs::absolute(folder, error);
  const std::vector<fs::path> in_order(whole.begin(), whole.end());
  std::vector<fs::path> parts(in_order.rbegin(), in_order.rend());  // the next one is the last
  fs::path at = "/";
  struct stat status{};
  int links = 0;
  while (!parts.empty()) {
    const fs::path part = parts.back();
    parts.pop_back();
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path next = part.is_absolute() ? part : part.empty() || part == "." ? at : at / part;
    if (lstat(next.c_str(), &status) != 0) return unreadable(next);
    if (auto distrust = distrust_on_the_way(next, status)) return distrust;
    if (!S_ISLNK(status.st_mode)) {
      at = next;
      continue;
    }
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > kMaxLinks) return Distrust{next, "is a link that leads nowhere", false};
    const std::vector<fs::path> follow(target.begin(), target.end());
    parts.insert(parts.end(), follow.rbegin(), follow.rend());
  }
  if (lstat(at.c_str(), &status) != 0) return unreadable(at);
  if (status.st_uid != geteuid()) return owner(at, status.st_uid);
  return writers(at, status);
}

std::optional<Distrust> distrust_of_file(int file, const std::string& path) {
  struct stat status{};
  if (fstat(file, &status) != 0) return unreadable(path);
  if (status.st_uid != geteuid()) return owner(path, status.st_uid);
  return writers(path, status);
}

}  // namespace piper::backend
