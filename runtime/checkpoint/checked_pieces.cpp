#include "runtime/checkpoint/checked_pieces.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/crc32.h"

namespace piper::runtime {

Failure unreadable_checkpoint(const std::string& path, const std::string& reason) {
  return {.code = kCheckpointUnreadable,
          .message = "cannot read `" + path + "`: " + reason,
          .hint = "resume from another checkpoint: `piper show checkpoint` lists them"};
}

CheckedPieces::CheckedPieces(std::string path, int file, const ManifestFile& described)
    : path_(std::move(path)),
      file_(file),
      described_(described),
      bytes_(std::min(kCheckedBytes, described.bytes)) {}

const unsigned char* CheckedPieces::read(std::uint64_t piece, std::optional<Failure>& failure) {
  const std::uint64_t position = piece * kCheckedBytes;
  const std::uint64_t size = std::min(kCheckedBytes, described_.bytes - position);
  std::uint64_t read = 0;
  while (read < size) {
    const ssize_t count =
        pread(file_, bytes_.data() + read, size - read, static_cast<off_t>(position + read));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      failure = unreadable_checkpoint(
          path_, count < 0 ? std::strerror(errno) : std::string("it ends too early"));
      return nullptr;
    }
    read += static_cast<std::uint64_t>(count);
  }
  if (crc32_of(bytes_.data(), size) == described_.crc32[piece]) return bytes_.data();
  failure = unreadable_checkpoint(path_, "the bytes from " + std::to_string(position) + " to " +
                                             std::to_string(position + size) +
                                             " do not have the checksum that the manifest says");
  return nullptr;
}

std::optional<Failure> CheckedPieces::verify(std::uint64_t bytes) {
  std::optional<Failure> failure;
  for (std::uint64_t piece = 0; piece * kCheckedBytes < bytes; ++piece) {
    if (read(piece, failure) == nullptr) return failure;
  }
  return std::nullopt;
}

}  // namespace piper::runtime
