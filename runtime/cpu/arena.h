#pragma once
// The memory of a rank on a CPU.
//
//   Arena arena;
//   if (!arena.allocate(program->arena_bytes, options)) ...;
//   arena.touch();

#include <cstdint>

#include "runtime/options.h"

namespace piper::runtime {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// Zeroed memory at a 64-byte boundary; with check_memory poisoned instead, its end guarded by a
  /// page that cannot be touched.
  bool allocate(std::uint64_t bytes, const Options& options);
  /// Makes the system provide all of the memory now; otherwise the first writer of each page waits
  /// for it. Bytes keep their values.
  void touch();
  unsigned char* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  /// One past the last byte that is no longer poisoned; 0 without check_memory.
  std::uint64_t touched_bytes() const;

 private:
  void* mapping_ = nullptr;
  std::uint64_t mapped_ = 0;
  unsigned char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool poisoned_ = false;
};

}  // namespace piper::runtime
