#pragma once
// A data file that a run reads at positions: it stays open, and is neither mapped nor held in
// memory.
//
// Guarantees: a file that becomes shorter, or is written, while it is open gives a failure and never
// a signal; only regular files are opened.
//
//   const auto file = DataFile::open("corpus.bin", failure);
//   if (auto failure = file->read(1024, buffer, 64)) ...;

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/failure.h"

namespace piper::runtime {

class DataFile {
 public:
  /// Follows links. Null, with the reason in `failure` (kDataUnreadable, without a location), if it
  /// cannot be opened or is no regular file.
  static std::shared_ptr<const DataFile> open(const std::string& path, Failure& failure);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  /// For a reader of headers, which leaves its position as it is.
  int descriptor() const { return file_; }
  /// Bytes, when it was opened.
  std::uint64_t size() const { return size_; }

  /// Reads `bytes` bytes at `offset`; the range lies below `size()`. Fails (kDataUnreadable,
  /// kDataChanged) without a location. Allocates only for a failure.
  std::optional<Failure> read(std::uint64_t offset, void* to, std::uint64_t bytes) const;
  /// The failure if size or time of modification are no longer those of the opening. One system
  /// call.
  std::optional<Failure> find_change() const;
  /// Asks the system to read a range into its cache; does not wait for it.
  void read_ahead(std::uint64_t offset, std::uint64_t bytes) const;
  /// The CRC-32 of a range: of all its bytes up to kWholeFingerprint, beyond that of its first and
  /// its last MiB end to end. Empty if they cannot be read.
  std::optional<std::uint32_t> fingerprint(std::uint64_t offset, std::uint64_t bytes) const;

  static constexpr std::uint64_t kWholeFingerprint = std::uint64_t{64} << 20;

 private:
  DataFile(int file, std::string path) : file_(file), path_(std::move(path)) {}

  const int file_;
  const std::string path_;
  std::uint64_t size_ = 0;
  std::timespec modified_{};
};

/// The CRC-32 of bytes in memory, by the same rule.
std::uint32_t fingerprint_of(const unsigned char* data, std::uint64_t bytes);

/// The system's text for a value of `errno`, in lower case like every message.
std::string error_text(int error);

/// Text of a file for a message: its beginning, without bytes that a terminal interprets and
/// without backticks.
std::string shown_text(std::string_view text);

}  // namespace piper::runtime
