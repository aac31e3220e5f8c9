#include "runtime/launch/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runtime/read_at.h"

namespace piper::runtime {

namespace {

Failure refused_link(const std::string& path, const std::string& lost) {
  Failure failure = unwritable_log(path, lost, "it is a link");
  failure.hint = "remove it, or give `--out` another folder";
  return failure;
}

}  // namespace

Failure unwritable_log(const std::string& path, const std::string& lost,
                       const std::string& reason) {
  return {.code = kOutputUnwritable,
          .message = "cannot write `" + path + "`: " + reason + "; " + lost,
          .hint = "give `--out` a folder that can be written, on a disk with space left"};
}

std::optional<Failure> make_log_folder(const std::string& folder, const std::string& lost) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return unwritable_log(folder, lost, error.message());
  return std::nullopt;
}

std::optional<Failure> make_folder_in(const std::string& out_folder, const std::string& name,
                                      const std::string& lost) {
  const std::string folder = out_folder + "/" + name;
  std::error_code error;
  if (std::filesystem::is_symlink(folder, error)) return refused_link(folder, lost);
  return make_log_folder(folder, lost);
}

LogFile::~LogFile() {
  if (file_ >= 0) close(file_);
}

std::optional<Failure> LogFile::open(const std::string& path, Begin begin,
                                     const std::string& lost) {
  path_ = path;
  // O_NONBLOCK: a FIFO is refused below instead of being waited for.
  const int how = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  file_ = ::open(path.c_str(), begin == Begin::fresh ? how | O_EXCL : how, 0644);
  if (file_ < 0) {
    if (errno == ELOOP) return refused_link(path, lost);
    return unwritable_log(path, lost, std::strerror(errno));
  }
  struct stat status{};
  if (fstat(file_, &status) != 0) return unwritable_log(path, lost, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    Failure failure = unwritable_log(path, lost, "it is no plain file");
    failure.hint = "remove it, or give `--out` another folder";
    return failure;
  }
  return std::nullopt;
}

std::optional<Failure> LogFile::write(std::string_view record, const std::string& lost) {
  for (std::size_t written = 0; written < record.size();) {
    const ssize_t count = ::write(file_, record.data() + written, record.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const std::string reason = count < 0 ? std::strerror(errno) : "nothing was taken";
      // No reader can use a part of a record.
      [[maybe_unused]] const int cut =
          written == 0 ? 0
                       : ftruncate(file_, lseek(file_, 0, SEEK_CUR) - static_cast<off_t>(written));
      return unwritable_log(path_, lost, reason);
    }
    written += static_cast<std::size_t>(count);
  }
  return std::nullopt;
}

std::string LogFile::beginning(std::size_t bytes) const {
  std::string text(bytes, '\0');
  text.resize(read_at(file_, 0, bytes, text.data()).bytes);
  return text;
}

}  // namespace piper::runtime
