#include "backend/jit/object_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

namespace piper::backend {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSeal = "piper-object ";
constexpr std::size_t kTail = kSeal.size() + 40;

constexpr std::string_view kAside = ".part";

/// Whether a file is one in the making: its name, a process and a count, and perhaps an ending that a compiler wants.
bool is_aside(std::string_view name) {
  const std::size_t end = name.rfind(kAside);
  const std::size_t behind = end + kAside.size();
  if (end == std::string_view::npos || (behind < name.size() && name[behind] != '.')) return false;
  name = name.substr(0, end);
  for (int number = 0; number < 2; ++number) {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    if (digits == name.size() || digits < 2 || name[digits - 1] != '.') return false;
    name = name.substr(0, digits - 1);
  }
  return true;
}

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

/// What stands behind an object; it is as long as kTail.
std::string seal(const std::string& name, std::string_view object) { return std::string(kSeal) + digest(name + "\n" + std::string(object)); }

std::error_code put_in_place(const std::string& aside, const std::string& path) {
  if (rename(aside.c_str(), path.c_str()) == 0) return {};
  const std::error_code error = last_error();
  unlink(aside.c_str());
  return error;
}

}  // namespace

bool read_file(const std::string& path, std::string& text) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;  // a pipe would be waited for
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
  if (!error_) share();
}

ObjectCache::~ObjectCache() {
  if (lock_ >= 0) close(lock_);
}

ObjectCache& ObjectCache::operator=(ObjectCache&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(lock_, other.lock_);
  std::swap(error_, other.error_);
  return *this;
}

void ObjectCache::share() {
  lock_ = open(path("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (lock_ < 0) lock_ = open(path("lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // another user's
  if (lock_ < 0) return;
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) remove_left_over();
  // Where a disk knows no locks nothing is removed, and nothing else is lost.
  while (flock(lock_, LOCK_SH) != 0 && errno == EINTR) {
  }
}

void ObjectCache::remove_left_over() const {
  std::error_code ignored;
  for (fs::recursive_directory_iterator it(folder_, ignored); !ignored && it != fs::recursive_directory_iterator(); it.increment(ignored)) {
    const std::string name = it->path().filename();
    // Other things that are kept beside the objects are not looked through.
    if (it.depth() == 0 && !name.starts_with(kHeaderFolder)) it.disable_recursion_pending();
    if (is_aside(name)) unlink(it->path().c_str());
  }
}

std::string ObjectCache::path_aside(const std::string& name) const {
  static std::atomic<unsigned> count{0};
  return path(name + "." + std::to_string(getpid()) + "." + std::to_string(count++) + std::string(kAside));
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
  if (!error) error = write_whole(aside, seal(name, object), O_APPEND);
  if (!error) return put_in_place(aside, path(name));
  unlink(aside.c_str());
  return error;
}

bool ObjectCache::whole(const std::string& name) const {
  std::string text;
  if (!read_file(path(name), text) || text.size() < kTail) return false;
  const std::string_view object(text.data(), text.size() - kTail);
  return std::string_view(text).substr(object.size()) == seal(name, object);
}

}  // namespace piper::backend
