#pragma once
// How many devices, each a thread of this process, the system can hold: asked before the first of them is made, for the last one fails after the
// others have taken minutes.
//
//   if (auto failure = too_many_devices(job.num_ranks, files)) return failure;   // P6005

#include <cstdint>
#include <optional>

#include "runtime/failure.h"

namespace piper::runtime {

/// A failure where so many threads, and mapped files beside them, are more than the limits of the system and the user leave. Nothing is a promise: others may
/// take what is left.
std::optional<Failure> too_many_devices(std::uint64_t devices, std::uint64_t mapped_files);

}  // namespace piper::runtime
