#include "runtime/weights/partial_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/checkpoint/checkpoint_files.h"

namespace piper::runtime {
namespace {

namespace fs = std::filesystem;

/// `folder/.name.4711.partial`: no other process has it.
std::string partial_of(const std::string& path) {
  const fs::path file(path);
  return (file.parent_path() /
          ("." + file.filename().string() + "." + std::to_string(getpid()) + ".partial"))
      .string();
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Failure unwritable_output(const std::string& path, const std::string& reason) {
  return {.code = kOutputUnwritable,
          .message = "cannot write `" + path + "`: " + reason,
          .hint = "give a place that can be written, on a disk with space left"};
}

PartialOutput::PartialOutput(std::string path, bool is_folder)
    : path_(std::move(path)), partial_(partial_of(path_)), is_folder_(is_folder) {}

PartialOutput::PartialOutput(PartialOutput&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::exchange(other.partial_, {})),
      is_folder_(other.is_folder_),
      permissions_(other.permissions_) {}

PartialOutput::~PartialOutput() {
  std::error_code ignored;
  if (!partial_.empty()) fs::remove_all(partial_, ignored);
}

std::optional<PartialOutput> PartialOutput::create_file(const std::string& path, Failure& failure) {
  struct stat status{};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    failure = unwritable_output(path, "it is no plain file");
    return std::nullopt;
  }
  std::error_code error;
  const std::string real = exists ? fs::canonical(path, error).string() : path;
  if (error) {
    failure = unwritable_output(path, error.message());
    return std::nullopt;
  }
  PartialOutput output(real, false);
  if (exists) output.permissions_ = status.st_mode & 07777u;
  // A killed process that had this number may have left one.
  if (unlink(output.partial_.c_str()) != 0 && errno != ENOENT) {
    failure = unwritable_output(path, std::strerror(errno));
    output.partial_.clear();
    return std::nullopt;
  }
  return output;
}

std::optional<PartialOutput> PartialOutput::create_folder(const std::string& path,
                                                          Failure& failure) {
  const auto refuse = [&](const std::string& reason) {
    failure = unwritable_output(path, reason);
    return std::nullopt;
  };
  std::string real = without_slashes(path);
  std::error_code error;
  if (const fs::file_status status = fs::status(real, error); fs::exists(status)) {
    if (!fs::is_directory(status)) return refuse("it is no folder");
    if (!fs::is_empty(real, error) || error) {
      refuse(error ? error.message() : "it is a folder that is not empty");
      failure.hint = "give a new folder, or an empty one";
      return std::nullopt;
    }
    real = fs::canonical(real, error).string();
    if (error) return refuse(error.message());
  }
  fs::create_directories(folder_of(real), error);
  if (error) return refuse(error.message());
  PartialOutput output(real, true);
  fs::remove_all(output.partial_, error);
  if (mkdir(output.partial_.c_str(), 0777) != 0) {
    const int reason = errno;
    output.partial_.clear();
    return refuse(std::strerror(reason));
  }
  return output;
}

std::optional<Failure> PartialOutput::commit() {
  if (permissions_) chmod(partial_.c_str(), static_cast<mode_t>(*permissions_));
  int error = is_folder_ ? sync_folder(partial_) : 0;
  if (error == 0 && rename(partial_.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) return unwritable_output(path_, std::strerror(error));
  partial_.clear();
  error = sync_folder(folder_of(path_));
  if (error != 0) return unwritable_output(path_, std::strerror(error));
  return std::nullopt;
}

}  // namespace piper::runtime
