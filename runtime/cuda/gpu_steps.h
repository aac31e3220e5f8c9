#pragma once
// The steps of a run on a GPU, all ranks in the one order of the plan: enqueued action by action or
// as graphs, and read back when they have ended.
//
//   GpuSteps steps(gpu);
//   steps.begin_run(run);
//   if (steps.enqueue(0)) ...;
//   if (steps.take_in(0)) ...;     // waits for it and keeps the ranks' reports

#include <cstdint>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/device/device.h"

namespace piper::runtime::cuda {

class GpuSteps {
 public:
  explicit GpuSteps(Gpu& gpu);

  void begin_run(const DeviceRun& run);
  /// Enqueues the next step; at most kStepsInFlight steps have not been taken in. False after a
  /// failure, as is `take_in`.
  bool enqueue(std::uint64_t step);
  bool take_in(std::uint64_t step);
  /// Checks the step, which may be in flight, for a failure.
  void look(std::uint64_t step);

 private:
  /// Consecutive actions of a rank in the order of all.
  struct StepRange {
    GpuRank* rank = nullptr;
    std::uint32_t first = 0, last = 0;
  };

  void put_in_one_order(Phase phase);
  bool enqueue_actions(std::uint64_t step);
  bool stage(GpuRank& rank, std::uint64_t step);
  bool begin_step(GpuRank& rank, std::uint64_t step);
  bool look_at_checks(const GpuRank& rank, std::uint64_t step);
  bool keep_reports(GpuRank& rank, std::uint64_t step);

  Gpu& gpu_;
  Driver& driver_;
  std::vector<StepRange> pieces_[2];  // by Phase
  std::uint64_t timed_step_ = 0;      // one more than the step that is timed; 0: none
  std::vector<double> values_;
};

}  // namespace piper::runtime::cuda
