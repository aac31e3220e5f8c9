#pragma once
// Makes the record of a step from what the ranks reported.

#include <chrono>
#include <vector>

#include "runtime/executor/run_state.h"

namespace piper::runtime {

class StepReports {
 public:
  explicit StepReports(const RunState& run);
  /// Step `step` of the run, which all local ranks have ended. Valid until the next call. Of several ranks that reported the same loss the
  /// first counts: they hold equal sums.
  const StepRecord& take(std::uint64_t step);

 private:
  const RunState& run_;
  StepRecord record_;
  std::vector<double> losses_, counts_;
  std::vector<std::vector<double>> sums_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace piper::runtime
