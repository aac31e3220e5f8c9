#include "runtime/data/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/crc32.h"
#include "runtime/read_at.h"

namespace piper::runtime {
namespace {

constexpr std::uint64_t kPart = std::uint64_t{1} << 20;

Failure unreadable(const std::string& path, const std::string& reason) {
  return {.code = kDataUnreadable,
          .message = "cannot read `" + path + "`: " + reason,
          .hint = "name a file that can be read"};
}

Failure changed(const std::string& path, const std::string& how) {
  return {.code = kDataChanged,
          .message = "`" + path + "` changed while the run reads it: " + how,
          .hint = "write new data into another file, and rename that one when the run has ended"};
}

std::string bytes_text(std::uint64_t bytes) {
  return '`' + std::to_string(bytes) + (bytes == 1 ? "` byte" : "` bytes");
}

/// The reason why a file is not read at positions; empty for a regular file.
std::string no_file(mode_t mode) {
  if (S_ISREG(mode)) return {};
  if (S_ISDIR(mode)) return "it is a folder";
  if (S_ISFIFO(mode)) return "it is a pipe, and this data is read at positions";
  if (S_ISSOCK(mode)) return "it is a socket";
  return "it is a device";
}

}  // namespace

std::string error_text(int error) {
  std::string text = std::strerror(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

std::string shown_text(std::string_view text) { return printable(text, 40); }

std::shared_ptr<const DataFile> DataFile::open(const std::string& path, Failure& failure) {
  struct stat status{};
  if (path.empty()) {
    failure = {.code = kDataUnreadable,
               .message = "the name of the data is empty",
               .hint = "name a file that can be read"};
    return nullptr;
  }
  // A device may act when it is opened, so it is looked at first.
  if (stat(path.c_str(), &status) != 0) {
    failure = unreadable(path, error_text(errno));
    return nullptr;
  }
  if (const std::string reason = no_file(status.st_mode); !reason.empty()) {
    failure = unreadable(path, reason);
    return nullptr;
  }
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    failure = unreadable(path, error_text(errno));
    return nullptr;
  }
  std::shared_ptr<DataFile> file(new DataFile(descriptor, path));
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    failure = unreadable(path, "it was replaced while it was opened");
    return nullptr;
  }
  file->size_ = static_cast<std::uint64_t>(status.st_size);
  file->modified_ = status.st_mtim;
  return file;
}

DataFile::~DataFile() { close(file_); }

std::optional<Failure> DataFile::read(std::uint64_t offset, void* to, std::uint64_t bytes) const {
  const ReadCount read = read_at(file_, offset, bytes, to);
  if (read.bytes == bytes) return std::nullopt;
  if (read.error != 0) return unreadable(path_, error_text(read.error));
  if (auto change = find_change()) return change;
  return changed(path_, "it ends at byte `" + std::to_string(offset + read.bytes) + "`");
}

std::optional<Failure> DataFile::find_change() const {
  struct stat status{};
  if (fstat(file_, &status) != 0) return unreadable(path_, error_text(errno));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size != size_)
    return changed(path_,
                   "it had " + bytes_text(size_) + " and now has `" + std::to_string(size) + '`');
  if (status.st_mtim.tv_sec != modified_.tv_sec || status.st_mtim.tv_nsec != modified_.tv_nsec)
    return changed(path_, "it was written after the run had opened it");
  return std::nullopt;
}

void DataFile::read_ahead(std::uint64_t offset, std::uint64_t bytes) const {
  // It is advice: a file system that does not take it loses time alone.
  static_cast<void>(posix_fadvise(file_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                                  POSIX_FADV_WILLNEED));
}

std::optional<std::uint32_t> DataFile::fingerprint(std::uint64_t offset,
                                                   std::uint64_t bytes) const {
  std::vector<unsigned char> part(static_cast<std::size_t>(std::min(bytes, kPart)));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t count = std::min(bytes - at, kPart);
    if (read(offset + at, part.data(), count)) return std::nullopt;
    crc = crc32_joined(crc, crc32_of(part.data(), count), count);
    at = bytes > kWholeFingerprint && at == 0 ? bytes - kPart : at + count;
  }
  return crc;
}

std::uint32_t fingerprint_of(const unsigned char* data, std::uint64_t bytes) {
  if (bytes <= DataFile::kWholeFingerprint) return crc32_of(data, bytes);
  return crc32_joined(crc32_of(data, kPart), crc32_of(data + (bytes - kPart), kPart), kPart);
}

}  // namespace piper::runtime
