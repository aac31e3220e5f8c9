#pragma once
// The facts of a run that its checkpoints keep, and where a run goes on from one.

#include <cstdint>
#include <string>

#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/state_memory.h"

namespace piper::runtime {

/// Everything in a manifest but progress and files. `data`: StepData::identity().
Manifest facts_of(const StateMemory& memory, const std::string& data);

/// The step at which a run with another batch, or the same one, goes on.
struct ResumePoint {
  std::uint64_t step = 0;            // training steps before it, counted in this run's batches
  std::int64_t further_updates = 0;  // PiperOptimizer
};
/// By samples: no sample is skipped, and fewer than a batch of them are seen twice.
ResumePoint resume_point(const Manifest& checkpoint, std::uint64_t samples_per_step);

}  // namespace piper::runtime
