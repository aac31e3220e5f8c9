#pragma once
// Makes the record of a step from what the ranks reported.

#include <chrono>
#include <span>
#include <vector>

#include "runtime/device/report_slots.h"
#include "runtime/executor/executor.h"

namespace piper::runtime {

class StepReports {
 public:
  /// Of a run of `steps` steps of one phase, from `first_step` on.
  StepReports(const PiperJob& job, Phase phase, std::uint64_t first_step, std::uint64_t steps);
  /// Step `step` of the run, which all local ranks have ended. Valid until the next call. Of several ranks that reported the same loss the
  /// first counts: they hold equal sums.
  const StepRecord& take(std::uint64_t step, std::span<const ReportSlots* const> ranks);

 private:
  const PiperJob& job_;
  const std::uint64_t first_step_;
  StepRecord record_;
  std::vector<double> losses_, counts_;
  std::vector<std::vector<double>> sums_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace piper::runtime
