#include "runtime/checkpoint/checked_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/crc32.h"
#include "runtime/read_at.h"

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
  const ReadCount read = read_at(file_, position, size, bytes_.data());
  if (read.bytes < size) {
    failure = unreadable_checkpoint(
        path_, read.error != 0 ? std::strerror(read.error) : "it ends too early");
    return nullptr;
  }
  if (crc32_of(bytes_.data(), size) == described_.crc32[piece]) return bytes_.data();
  failure = unreadable_checkpoint(path_, "the bytes from " + std::to_string(position) + " to " +
                                             std::to_string(position + size) +
                                             " do not have the checksum that the manifest says");
  return nullptr;
}

std::optional<Failure> CheckedPieces::verify(std::uint64_t bytes,
                                             const std::function<bool()>& stopped) {
  std::optional<Failure> failure;
  for (std::uint64_t piece = 0; piece * kCheckedBytes < bytes; ++piece) {
    if (stopped && stopped()) return std::nullopt;
    if (read(piece, failure) == nullptr) return failure;
  }
  return std::nullopt;
}

}  // namespace piper::runtime
