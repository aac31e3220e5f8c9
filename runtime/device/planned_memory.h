#pragma once
// The memory that LibTorch may allocate during one call: results at their planned addresses, the
// rest from the planned workspace, one piece after the other. A hook in its allocator calls this.
//
//   PlannedMemory memory{.next = workspace, .left = bytes, .results = {{{out, out_bytes}}}};
//   void* const at = memory.take(bytes);   // throws Overrun if the plan has too little

#include <array>
#include <cstdint>
#include <exception>

#include "runtime/alignment.h"

namespace piper::runtime {

struct Overrun : std::exception {};

struct PlannedMemory {
  struct Result {
    void* at;
    std::uint64_t bytes;
    bool taken = false;
  };
  unsigned char* next = nullptr;
  std::uint64_t left = 0;
  std::uint64_t alignment = kAlignment;
  std::uint64_t missing = 0;  // bytes that the first overrun lacked
  std::array<Result, 3> results{};

  /// The first result of that size that is not taken, or a piece of the workspace.
  void* take(std::uint64_t bytes) {
    for (Result& result : results) {
      if (!result.at || result.taken || result.bytes != bytes) continue;
      result.taken = true;
      return result.at;
    }
    const std::uint64_t padding =
        (alignment - reinterpret_cast<std::uintptr_t>(next) % alignment) % alignment;
    if (bytes + padding > left) {
      missing = bytes + padding - left;
      throw Overrun();
    }
    unsigned char* const memory = next + padding;
    next += bytes + padding;
    left -= bytes + padding;
    return memory;
  }
};

}  // namespace piper::runtime
