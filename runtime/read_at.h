#pragma once
// Reads bytes of a file at a position, however many calls of the system that takes.
//
//   const ReadCount read = read_at(file, 1024, sizeof header, &header);
//   if (read.bytes < sizeof header) report(read.error != 0 ? std::strerror(read.error) : "it ends");

#include <cstdint>

namespace piper::runtime {

struct ReadCount {
  std::uint64_t bytes = 0;
  int error = 0;  // an errno; 0: there was none
};

/// Reads up to `bytes` bytes from `position` on, fewer after an error or at the end of the file. The
/// position of the file does not change.
ReadCount read_at(int file, std::uint64_t position, std::uint64_t bytes, void* to);

}  // namespace piper::runtime
