#pragma once
// Jobs that several tests run.

#include <memory>
#include <vector>

#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/executor.h"
#include "tests/runtime/hand_program.h"

namespace piper::runtime {

inline constexpr std::uint32_t kMicrobatches = 6;
inline constexpr std::uint32_t kWindow = 2;
inline constexpr std::uint64_t kWidth = 50;

/// Rank 0 sends x * w of each microbatch to rank 1, which squares it, sends the gradient back and
/// reports the sums; at the end of a step rank 0 updates w, which the next step reads. Two buffers
/// per direction: the minimum window.
void add_pipeline(HandJob& job);
/// The losses of `steps` steps of that pipeline, computed in one loop; moves w on.
std::vector<double> expected_losses(std::uint64_t steps, double& w, std::uint64_t first = 0);

/// Adds an evaluation program to that pipeline: the loss of held-out step s, from 0, is 2 * s + 1.
void add_evaluation(HandJob& job);

/// Creates an executor on the CPU; expects success.
std::unique_ptr<Executor> create(const PiperJob& job, const ExecutorOptions& options = {},
                                 const CpuOptions& cpu = {});

}  // namespace piper::runtime
