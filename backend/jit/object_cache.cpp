#include "backend/jit/object_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
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

/// Whether a file is an unfinished one: its name, a process and a count, and perhaps an ending for
/// the compiler.
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

/// Appends to the file and closes it.
std::error_code write_all(int file, std::string_view text) {
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

/// A new file. An existing one is a leftover of an earlier process with this process number.
std::error_code write_new(const std::string& path, std::string_view text) {
  unlink(path.c_str());
  return write_all(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644),
                   text);
}

/// Creates the missing folders of the path, for this user alone.
std::error_code make_folders(const fs::path& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return {};
  if (mkdir(path.c_str(), 0700) == 0) return {};
  // Made by another process, or a file.
  if (errno == EEXIST)
    return fs::is_directory(path, error) ? std::error_code()
                                         : std::make_error_code(std::errc::not_a_directory);
  if (errno != ENOENT || !path.has_parent_path() || path.parent_path() == path) return last_error();
  if ((error = make_folders(path.parent_path()))) return error;
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST ? std::error_code() : last_error();
}

/// The text of a regular file that only this user can have written. Does not block on a pipe.
bool read_own(const std::string& path, std::string& text, std::optional<Distrust>& distrust) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  struct stat status{};
  bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (good) distrust = distrust_of_file(file, path);
  good = good && !distrust;
  text.resize(good ? static_cast<std::size_t>(status.st_size) : 0);
  for (std::size_t at = 0; good && at < text.size();) {
    const ssize_t got = ::read(file, text.data() + at, text.size() - at);
    if (got > 0) at += static_cast<std::size_t>(got);
    good = got > 0 || (got < 0 && errno == EINTR);
  }
  close(file);
  return good;
}

/// The tail of an object, kTail bytes long.
std::string seal(const std::string& name, std::string_view object) {
  return std::string(kSeal) + digest(name + "\n" + std::string(object));
}

std::error_code put_in_place(const std::string& aside, const std::string& path) {
  if (rename(aside.c_str(), path.c_str()) == 0) return {};
  const std::error_code error = last_error();
  unlink(aside.c_str());
  return error;
}

}  // namespace

bool read_file(const std::string& path, std::string& text) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;  // opening a pipe would block
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
  error_ = make_folders(folder_);
  if (error_) return;
  distrust_ = distrust_of_folder(folder_);
  if (distrust_) {
    error_ = std::make_error_code(std::errc::permission_denied);
    return;
  }
  const std::string probe = path_aside("probe");
  error_ = write_new(probe, "");
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
  std::swap(distrust_, other.distrust_);
  return *this;
}

void ObjectCache::share() {
  lock_ = open(path("lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
  if (lock_ < 0) return;
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) remove_left_over();
  // If a disk has no locks, leftovers stay; nothing else changes.
  while (flock(lock_, LOCK_SH) != 0 && errno == EINTR) {}
}

BuildClaim::~BuildClaim() {
  if (file_ >= 0) close(file_);
}
BuildClaim::BuildClaim(BuildClaim&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

bool BuildClaim::take(const ObjectCache& cache, const std::string& name) {
  if (file_ < 0)
    file_ =
        open(cache.path("builds.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct flock byte{};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(std::hash<std::string>()(name) >> 16);
  byte.l_len = 1;
  return file_ < 0 || fcntl(file_, F_OFD_SETLK, &byte) == 0 || (errno != EAGAIN && errno != EACCES);
}

void ObjectCache::remove_left_over() const {
  std::error_code ignored;
  for (fs::recursive_directory_iterator it(folder_, ignored);
       !ignored && it != fs::recursive_directory_iterator(); it.increment(ignored)) {
    const std::string name = it->path().filename();
    // Other files beside the objects are ignored.
    if (it.depth() == 0 && !name.starts_with(kHeaderFolder)) it.disable_recursion_pending();
    if (is_aside(name)) unlink(it->path().c_str());
  }
}

std::string ObjectCache::path_aside(const std::string& name) const {
  static std::atomic<unsigned> count{0};
  return path(name + "." + std::to_string(getpid()) + "." + std::to_string(count++) +
              std::string(kAside));
}

std::error_code ObjectCache::store_text(const std::string& name, std::string_view text) const {
  std::string there;
  if (read(name, there) && there == text) return {};
  make_folders(fs::path(path(name)).parent_path());
  const std::string aside = path_aside(name);
  if (const std::error_code error = write_new(aside, text)) {
    unlink(aside.c_str());
    return error;
  }
  return put_in_place(aside, path(name));
}

std::error_code ObjectCache::store_object(const std::string& aside, const std::string& name) const {
  // A compiler may create files that the group can write.
  if (chmod(aside.c_str(), 0755) != 0) return last_error();
  std::string object;
  std::optional<Distrust> distrust;
  std::error_code error;
  if (!read_own(aside, object, distrust)) error = std::make_error_code(std::errc::io_error);
  if (!error)
    error = write_all(open(aside.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC),
                      seal(name, object));
  if (!error) return put_in_place(aside, path(name));
  unlink(aside.c_str());
  return error;
}

bool ObjectCache::whole(const std::string& name, std::optional<Distrust>& distrust) const {
  std::string text;
  if (!read_own(path(name), text, distrust) || text.size() < kTail) return false;
  const std::string_view object(text.data(), text.size() - kTail);
  return std::string_view(text).substr(object.size()) == seal(name, object);
}

bool ObjectCache::read(const std::string& name, std::string& text) const {
  std::optional<Distrust> distrust;
  return read_own(path(name), text, distrust);
}

}  // namespace piper::backend
