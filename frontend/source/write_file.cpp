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
  if (const std::error_code error = fs::openFileForWrite(path, descriptor, fs::CD_OpenExisting, fs::OF_Append)) return error;
  const std::error_code error = write(descriptor, text);
  const std::error_code closed = fs::closeFile(descriptor);
  return error ? error : closed;
}

}  // namespace

std::error_code open_beside(const std::string& path, int& descriptor, std::string& aside) {
  // LLVM's createUniqueFile replaces every `%` of a path, also one in the name of a folder. Only the ending comes from it here.
  for (int tries = 0; tries < 128; ++tries) {
    llvm::SmallString<16> ending;
    fs::createUniquePath("%%%%%%%%", ending, /*MakeAbsolute=*/false);
    aside = path + "." + ending.str().str();
    const std::error_code error = fs::openFile(aside, descriptor, fs::CD_CreateNew, fs::FA_Write, fs::OF_None, fs::owner_read | fs::owner_write);
    if (error != std::errc::file_exists) return error;
  }
  return std::make_error_code(std::errc::file_exists);
}

std::error_code write_file(const std::string& path, std::string_view text) {
  llvm::SmallString<256> real(path);
  auto permissions = static_cast<fs::perms>(0666 & ~fs::getUmask());
  fs::file_status status;
  // `/dev/stdout` may be a plain file that somebody else has open.
  if (path.starts_with("/dev/") || path.starts_with("/proc/")) return write_in_place(path, text);
  if (!fs::status(path, status)) {
    if (status.type() == fs::file_type::directory_file) return std::make_error_code(std::errc::is_a_directory);
    if (status.type() != fs::file_type::regular_file) return write_in_place(path, text);
    if (const std::error_code error = fs::real_path(path, real)) return error;
    permissions = status.permissions();
  }
  // In the same folder, because a rename does not cross disks. LLVM's TempFile would take the process's signals for itself.
  int descriptor = -1;
  std::string aside;
  if (const std::error_code error = open_beside(real.str().str(), descriptor, aside)) return error;
  std::error_code error = write(descriptor, text);
  if (!error) error = fs::setPermissions(descriptor, permissions);
  if (const std::error_code closed = fs::closeFile(descriptor); !error) error = closed;
  if (!error) error = fs::rename(aside, real);
  if (error) fs::remove(aside);
  return error;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::equivalent(a, b, none);
}

}  // namespace piper::source
