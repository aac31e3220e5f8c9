#pragma once
// The memory of a run's ranks between two runs, as checkpoints read and write it.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace piper::runtime {

class ProcessGroup;

struct StateMemory {
  const PiperJob* job = nullptr;        // of this process
  std::span<const PiperJobRank> ranks;  // of all processes
  ProcessGroup* group = nullptr;        // null: all ranks are in this process
  /// The number of a rank among those of this process; nothing for a rank of another process.
  std::function<std::optional<std::size_t>(std::size_t rank)> local;
  /// Bytes of a local rank's arena, or of its arena on the host. Null, or false, if they cannot be
  /// reached: then `failure` has the reason. The result of `read` is valid until the next call.
  std::function<const unsigned char*(std::size_t rank, bool on_host, std::uint64_t offset,
                                     std::uint64_t bytes)>
      read;
  std::function<bool(std::size_t rank, bool on_host, std::uint64_t offset, const void* from,
                     std::uint64_t bytes)>
      write;
  std::function<std::optional<Failure>()> failure;
};

}  // namespace piper::runtime
