#pragma once
// What carries messages between ranks on CUDA: copies on one GPU (loopback.h), or NCCL between processes (nccl_exchange.h).

#include <cstdint>
#include <optional>

#include "runtime/failure.h"
#include "runtime/phase.h"

namespace piper::runtime::cuda {

struct GpuRank;

class Exchange {
 public:
  virtual ~Exchange() = default;

  /// About so much memory of the device it takes beside that of the plan, once it is connected.
  virtual std::uint64_t library_bytes() const { return 0; }
  /// Before the first step: finds who meets whom in a phase, and makes what that takes.
  virtual std::optional<Failure> connect(Phase phase) = 0;
  /// Whoever has come to a communication has not: a capture was given up.
  virtual void part() {}
  /// A member has come to the communication at `position` of its queue. Nonzero after a failure.
  virtual int arrive(GpuRank& rank, std::uint32_t queue, std::uint32_t action, std::uint32_t position) = 0;
  /// The failure of another process, or of a communication under way, after which nothing more is waited for.
  virtual std::optional<Failure> lost() { return std::nullopt; }
};

}  // namespace piper::runtime::cuda
