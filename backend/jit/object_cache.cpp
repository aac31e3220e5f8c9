#include "backend/jit/object_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

namespace piper::backend {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSeal = "piper-object ";

std::error_code last_error() { return {errno, std::generic_category()}; }

std::error_code write_whole(const std::string& path, std::string_view text, int flags) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (file < 0) return last_error();
  std::error_code error;
  while (!error && !text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error = last_error();
    }
  }
  if (!error && fsync(file) != 0) error = last_error();
  if (close(file) != 0 && !error) error = last_error();
  return error;
}

std::error_code put_in_place(const std::string& aside, const std::string& path) {
  if (rename(aside.c_str(), path.c_str()) == 0) return {};
  const std::error_code error = last_error();
  unlink(aside.c_str());
  return error;
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
  if (folder_.empty()) {
    error_ = std::make_error_code(std::errc::no_such_file_or_directory);
    return;
  }
  fs::create_directories(folder_, error_);
  if (error_) return;
  const std::string probe = path_aside("probe");
  error_ = write_whole(probe, "", O_TRUNC);
  unlink(probe.c_str());
}

std::string ObjectCache::path_aside(const std::string& name) const {
  static std::atomic<unsigned> count{0};
  return path(name + "." + std::to_string(getpid()) + "." + std::to_string(count++) + ".part");
}

std::error_code ObjectCache::store_text(const std::string& name, std::string_view text) const {
  std::string there;
  if (read_file(path(name), there) && there == text) return {};
  std::error_code ignored;
  fs::create_directories(fs::path(path(name)).parent_path(), ignored);
  const std::string aside = path_aside(name);
  if (const std::error_code error = write_whole(aside, text, O_TRUNC)) {
    unlink(aside.c_str());
    return error;
  }
  return put_in_place(aside, path(name));
}

std::error_code ObjectCache::store_object(const std::string& aside, const std::string& name) const {
  std::string object;
  std::error_code error;
  if (!read_file(aside, object)) error = std::make_error_code(std::errc::io_error);
  if (!error) error = write_whole(aside, std::string(kSeal) + digest(object), O_APPEND);
  if (!error) return put_in_place(aside, path(name));
  unlink(aside.c_str());
  return error;
}

bool ObjectCache::whole(const std::string& name) const {
  std::string text;
  constexpr std::size_t kTail = kSeal.size() + 40;
  if (!read_file(path(name), text) || text.size() < kTail) return false;
  const std::string_view object(text.data(), text.size() - kTail);
  return std::string_view(text).substr(object.size()) == std::string(kSeal) + digest(object);
}

}  // namespace piper::backend
