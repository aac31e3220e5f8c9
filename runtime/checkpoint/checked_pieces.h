#pragma once
// Reads a file of a checkpoint piece by piece, and verifies each piece by its checksum.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"

namespace piper::runtime {

/// The failure of a file of a checkpoint: kCheckpointUnreadable.
Failure unreadable_checkpoint(const std::string& path, const std::string& reason);

class CheckedPieces {
 public:
  /// `file` is open for reading; `described` must outlive this.
  CheckedPieces(std::string path, int file, const ManifestFile& described);

  /// The bytes of a piece, valid until the next call. Null with the reason in `failure`.
  const unsigned char* read(std::uint64_t piece, std::optional<Failure>& failure);
  /// Verifies the pieces of the first bytes, until `stopped` (empty: never).
  std::optional<Failure> verify(std::uint64_t bytes, const std::function<bool()>& stopped = {});

 private:
  const std::string path_;
  const int file_;
  const ManifestFile& described_;
  std::vector<unsigned char> bytes_;
};

}  // namespace piper::runtime
