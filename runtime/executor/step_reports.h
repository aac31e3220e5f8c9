#pragma once
// Makes the record of a step from the reports of the ranks.

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "runtime/data/step_data.h"
#include "runtime/device/device.h"
#include "runtime/device/report_slots.h"
#include "runtime/executor/executor.h"

namespace piper::runtime {

class StepReports {
 public:
  StepReports(const PiperJob& job, const DeviceRun& run);
  /// Step `step` of the run, which all local ranks have ended. Valid until the next call. If
  /// several ranks reported the same loss, the first counts: they hold equal sums.
  const StepRecord& take(std::uint64_t step, std::span<const ReportSlots* const> ranks);
  /// Data that a record needs could not be read: the first such failure.
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  double elements_that_count(std::uint32_t loss) const;
  double counted_beside_data(const PiperLoss& loss);
  void refuse_non_finite();

  const PiperJob& job_;
  const std::uint64_t first_step_;
  const StepData& data_;
  const Batches batches_;
  const std::uint64_t batch_;  // samples of a full batch
  StepRecord record_;
  std::vector<double> losses_, counts_;
  std::vector<std::vector<double>> sums_;
  std::optional<Failure> failure_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace piper::runtime
