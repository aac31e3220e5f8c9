#include "backend/jit/object_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

namespace piper::backend {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSeal = "piper-object ";

bool write_whole(const std::string& path, std::string_view text, int flags) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (file < 0) return false;
  bool good = true;
  while (good && !text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    good = written > 0;
    if (good) text.remove_prefix(static_cast<std::size_t>(written));
  }
  good = good && fsync(file) == 0;
  return close(file) == 0 && good;
}

bool put_in_place(const std::string& aside, const std::string& path) {
  if (rename(aside.c_str(), path.c_str()) == 0) return true;
  unlink(aside.c_str());
  return false;
}

}  // namespace

bool read_file(const std::string& path, std::string& text) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::ostringstream all;
  all << file.rdbuf();
  text = std::move(all).str();
  return !file.bad();
}

std::string digest(std::string_view text) {
  llvm::SHA1 sha;
  sha.update(llvm::StringRef(text.data(), text.size()));
  return llvm::toHex(sha.final(), /*LowerCase=*/true);
}

ObjectCache::ObjectCache(std::string folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  const std::string probe = path_aside("probe");
  usable_ = write_whole(probe, "", O_TRUNC);
  unlink(probe.c_str());
}

std::string ObjectCache::path_aside(const std::string& name) const {
  static std::atomic<unsigned> count{0};
  return path(name + "." + std::to_string(getpid()) + "." + std::to_string(count++) + ".part");
}

bool ObjectCache::store_text(const std::string& name, std::string_view text) const {
  std::string there;
  if (read_file(path(name), there) && there == text) return true;
  std::error_code error;
  fs::create_directories(fs::path(path(name)).parent_path(), error);
  const std::string aside = path_aside(name);
  if (!write_whole(aside, text, O_TRUNC)) {
    unlink(aside.c_str());
    return false;
  }
  return put_in_place(aside, path(name));
}

bool ObjectCache::store_object(const std::string& aside, const std::string& name) const {
  std::string object;
  if (!read_file(aside, object) || !write_whole(aside, std::string(kSeal) + digest(object), O_APPEND)) {
    unlink(aside.c_str());
    return false;
  }
  return put_in_place(aside, path(name));
}

bool ObjectCache::whole(const std::string& name) const {
  std::string text;
  constexpr std::size_t kTail = kSeal.size() + 40;
  if (!read_file(path(name), text) || text.size() < kTail) return false;
  const std::string_view object(text.data(), text.size() - kTail);
  return std::string_view(text).substr(object.size()) == std::string(kSeal) + digest(object);
}

}  // namespace piper::backend
