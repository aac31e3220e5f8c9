#pragma once
// Reads weights from files into the ranks of a run, each rank the elements that it holds.
//
//   if (auto failure = load_weights(executor->state_memory(), *files, map)) ...;

#include <cstdint>
#include <functional>
#include <optional>

#include "runtime/checkpoint/state_memory.h"
#include "runtime/weights/weight_files.h"
#include "runtime/weights/weight_map.h"

namespace piper::runtime {

struct LoadOptions {
  /// The elements that are converted at once, in bytes, and those that are read at once.
  std::uint64_t block_bytes = std::uint64_t{64} << 20, window_bytes = std::uint64_t{4} << 20;
  /// Once it is true the loading ends, without a failure.
  std::function<bool()> stopped = {};
};

/// Writes the parameters of all local ranks that the files have; the others stay as they are. Master
/// weights get the value of the file in their type, and the parameter beside them its rounding. The
/// map fits the files (match_weights). kWeightsUnreadable; kWeightOutOfRange for a finite value that
/// the type of the parameter cannot hold; kOutOfMemory. After a failure nothing may run.
std::optional<Failure> load_weights(const StateMemory& memory, const WeightFiles& files,
                                    const WeightMap& map, const LoadOptions& options = {});

}  // namespace piper::runtime
