#pragma once
// The carrier of messages between ranks on CUDA: copies on one GPU (loopback.h), or NCCL between
// processes (nccl_exchange.h).

#include <cstdint>
#include <optional>

#include "runtime/failure.h"
#include "runtime/phase.h"

namespace piper::runtime::cuda {

struct GpuRank;

class Exchange {
 public:
  virtual ~Exchange() = default;

  /// About the device memory that it takes outside the plan, once it is connected.
  virtual std::uint64_t library_bytes() const { return 0; }
  /// Called before the first step: matches the communications of a phase, and makes all they need.
  virtual std::optional<Failure> connect(Phase phase) = 0;
  /// Forgets all arrivals: a capture was given up.
  virtual void part() {}
  /// A member has reached the communication at `position` of its stream. Nonzero after a failure.
  virtual int arrive(GpuRank& rank, std::uint32_t stream, std::uint32_t action,
                     std::uint32_t position) = 0;
  /// The failure of another process, or of a communication in flight, after which nothing is waited
  /// for.
  virtual std::optional<Failure> lost() { return std::nullopt; }
};

}  // namespace piper::runtime::cuda
