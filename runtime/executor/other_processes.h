#pragma once
// The other processes of a run, as the executor of one of them sees them: they stop at the same step, all learn of the first failure, and what their ranks report, record and have reaches rank 0.
//
//   OtherProcesses others(processes, job);
//   if (auto failure = others.agree(device)) ...;              // before the first step
//   while (others.group().begin_step() == ProcessGroup::Begin::yes) ...;
//   others.send(phase, step, device.reports(0));               // when a step has ended here
//   if (others.take(phase, step)) use(others.slots(phase));    // on rank 0: all that others reported of it has come
//   others.end_run(steps);
//   if (auto failure = others.collect(recorded)) ...;
//   others.read_parameter(device, "head.0.out", Part::values);

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/step_numbers.h"
#include "runtime/processes/process_group.h"

namespace piper::runtime {

class OtherProcesses {
 public:
  /// `job`: with the rank of this process alone.
  OtherProcesses(const Processes& processes, const PiperJob& job) : group_(*processes.group), whole_(*processes.whole), numbers_(job, group_) {}

  ProcessGroup& group() { return group_; }
  /// Of all processes.
  std::span<const PiperJobRank> ranks() const { return {whole_.ranks, whole_.num_ranks}; }

  /// Who sends which numbers of a step. A failure of the run where not all processes take part.
  std::optional<Failure> agree(const Device& device);
  /// `step`: of the run. Elsewhere than on rank 0 nothing is waited for.
  void send(Phase phase, std::uint64_t step, const ReportSlots& slots) { numbers_.send(phase, steps_before_ + step, step, slots); }
  bool take(Phase phase, std::uint64_t step) { return numbers_.take(phase, steps_before_ + step, step); }
  /// Beside those of this process.
  const std::vector<std::unique_ptr<ReportSlots>>& slots(Phase phase) const { return numbers_.slots(phase); }
  /// After so many steps, which are as many for all.
  void end_run(std::uint64_t steps) { steps_before_ += steps; }

  /// What this process has recorded goes to rank 0, which gets it of all ranks, with times from one start; elsewhere nothing is left. A failure of the run where a process is gone.
  std::optional<Failure> collect(std::vector<RecordedRank>& recorded);
  /// Called by all for the same parts in the same order; rank 0 gets it.
  std::optional<ParameterValues> read_parameter(Device& device, std::string_view name, Part part);

 private:
  bool receive_recorded(const PiperJobRank& rank, std::vector<RecordedAction>& actions);
  std::uint32_t rank() const { return group_.launch().rank; }

  ProcessGroup& group_;
  const PiperJob& whole_;
  StepNumbers numbers_;
  std::uint64_t steps_before_ = 0;  // of all runs before
};

}  // namespace piper::runtime
