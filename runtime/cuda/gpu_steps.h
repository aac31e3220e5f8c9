#pragma once
// The steps of a run on a GPU, all ranks in the one order of the plan: enqueued action by action or as graphs, and taken in when they have ended.
//
//   GpuSteps steps(gpu);
//   steps.begin_run(run);
//   if (steps.enqueue(0)) ...;
//   if (steps.take_in(0)) ...;     // waits for it; what the ranks reported is kept

#include <cstdint>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/device/device.h"

namespace piper::runtime::cuda {

class GpuSteps {
 public:
  explicit GpuSteps(Gpu& gpu);

  void begin_run(const DeviceRun& run);
  /// The step after the one before; at most kStepsUnderWay of them have not been taken in. False after a failure, as of the other.
  bool enqueue(std::uint64_t step);
  bool take_in(std::uint64_t step);
  /// At the step, which may be under way, for a failure.
  void look(std::uint64_t step);

 private:
  /// Consecutive actions of a rank in the order of all.
  struct Piece {
    GpuRank* rank = nullptr;
    std::uint32_t first = 0, last = 0;
  };

  void put_in_one_order(Phase phase);
  bool enqueue_actions(std::uint64_t step);
  void stage(GpuRank& rank, std::uint64_t step);
  bool begin_step(GpuRank& rank, std::uint64_t step);
  bool look_at_checks(const GpuRank& rank, std::uint64_t step);
  bool keep_reports(GpuRank& rank, std::uint64_t step);

  Gpu& gpu_;
  Driver& driver_;
  std::vector<Piece> pieces_[2];  // by Phase
  std::uint64_t timed_step_ = 0;  // one more than the step that is timed; 0: none
  std::vector<double> values_;
};

}  // namespace piper::runtime::cuda
