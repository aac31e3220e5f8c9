#pragma once
// The number of devices, each a thread of this process, that the system can hold. It is checked
// before the first device is made, because otherwise the last one fails after the others have taken
// minutes.
//
//   if (auto failure = too_many_devices(job.num_ranks, files)) return failure;   // P6005

#include <cstdint>
#include <optional>

#include "runtime/failure.h"

namespace piper::runtime {

/// A failure if this number of threads, with mapped files beside them, is above the limits of the
/// system and the user. An empty result is no promise: other processes may take the remainder.
std::optional<Failure> too_many_devices(std::uint64_t devices, std::uint64_t mapped_files);

}  // namespace piper::runtime
