#include "frontend/source/write_file.h"

#include <filesystem>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::source {

namespace {

namespace fs = llvm::sys::fs;

std::error_code write(int descriptor, std::string_view text) {
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
  stream << llvm::StringRef(text.data(), text.size());
  stream.flush();
  const std::error_code error = stream.error();
  stream.clear_error();
  return error;
}

std::error_code write_in_place(const std::string& path, std::string_view text) {
  int descriptor = -1;
  if (const std::error_code error =
          fs::openFileForWrite(path, descriptor, fs::CD_OpenExisting, fs::OF_Append))
    return error;
  const std::error_code error = write(descriptor, text);
  const std::error_code closed = fs::closeFile(descriptor);
  return error ? error : closed;
}

/// How a path is written.
struct Target {
  bool in_place = false;  // it is a device, a pipe or the like
  llvm::SmallString<256> real;
  fs::perms permissions = fs::perms_not_known;
};

std::error_code find_target(const std::string& path, Target& target) {
  target.real = llvm::StringRef(path);
  target.permissions = static_cast<fs::perms>(0666 & ~fs::getUmask());
  // `/dev/stdout` may be a plain file that somebody else has open.
  target.in_place = path.starts_with("/dev/") || path.starts_with("/proc/");
  fs::file_status status;
  if (target.in_place || fs::status(path, status)) return {};
  if (status.type() == fs::file_type::directory_file)
    return std::make_error_code(std::errc::is_a_directory);
  target.in_place = status.type() != fs::file_type::regular_file;
  if (target.in_place) return {};
  target.permissions = status.permissions();
  return fs::real_path(path, target.real);
}

}  // namespace

std::error_code open_beside(const std::string& path, int& descriptor, std::string& aside) {
  // LLVM's createUniqueFile replaces every `%` of a path, also one in the name of a folder. Only
  // the ending comes from it here.
  for (int tries = 0; tries < 128; ++tries) {
    llvm::SmallString<16> ending;
    fs::createUniquePath("%%%%%%%%", ending, /*MakeAbsolute=*/false);
    aside = path + "." + ending.str().str();
    const std::error_code error = fs::openFile(aside, descriptor, fs::CD_CreateNew, fs::FA_Write,
                                               fs::OF_None, fs::owner_read | fs::owner_write);
    if (error != std::errc::file_exists) return error;
  }
  return std::make_error_code(std::errc::file_exists);
}

std::error_code write_file(const std::string& path, std::string_view text) {
  Target target;
  if (const std::error_code error = find_target(path, target)) return error;
  if (target.in_place) return write_in_place(path, text);
  int descriptor = -1;
  std::string aside;
  // In the same folder, because a rename does not cross disks. LLVM's TempFile would take the
  // process's signals for itself.
  if (const std::error_code error = open_beside(target.real.str().str(), descriptor, aside))
    return error;
  std::error_code error = write(descriptor, text);
  if (!error) error = fs::setPermissions(descriptor, target.permissions);
  if (const std::error_code closed = fs::closeFile(descriptor); !error) error = closed;
  if (!error) error = fs::rename(aside, target.real);
  if (error) fs::remove(aside);
  return error;
}

std::error_code check_writable(const std::string& path) {
  Target target;
  if (const std::error_code error = find_target(path, target)) return error;
  if (target.in_place) return fs::access(path, fs::AccessMode::Write);
  int descriptor = -1;
  std::string aside;
  if (const std::error_code error = open_beside(target.real.str().str(), descriptor, aside))
    return error;
  const std::error_code closed = fs::closeFile(descriptor);
  const std::error_code removed = fs::remove(aside);
  return closed ? closed : removed;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::equivalent(a, b, none);
}

}  // namespace piper::source
