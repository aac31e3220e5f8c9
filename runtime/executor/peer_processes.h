#pragma once
// The other processes of a run, as one process's executor uses them: they stop at the same step,
// all learn of the first failure, and the reports, records and parameters of their ranks reach rank
// 0.
//
//   PeerProcesses peers(processes, job);
//   if (auto failure = peers.agree(device, facts)) ...;       // before the first step
//   while (peers.group().begin_step() == ProcessGroup::Begin::yes) ...;
//   peers.send(phase, step, slots);                           // when a step has ended here
//   if (peers.take(phase, step)) use(peers.slots(phase));    // on rank 0: all reports of the others have arrived
//   peers.end_run(steps);
//   failure.notes = peers.last_actions(device);               // of a lost process
//   if (auto failure = peers.collect(recorded)) ...;
//   peers.read_parameter(device, "head.0.out", ParamTensor::values);

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/step_numbers.h"
#include "runtime/processes/process_group.h"

namespace piper::runtime {

class PeerProcesses {
 public:
  /// `job`: with the ranks of this process alone. `out_folder`: of flight records, or empty.
  PeerProcesses(const Processes& processes, const PiperJob& job, const std::string& out_folder)
      : group_(*processes.group),
        out_folder_(out_folder),
        whole_job_(*processes.whole),
        ranks_(ranks_of(process(), group_.launch().world, job.world)),
        process_of_rank_(processes_of_ranks(group_.launch().world, job.world)),
        numbers_(job, group_) {}

  ProcessGroup& group() { return group_; }
  /// The ranks of all processes.
  std::span<const PiperJobRank> ranks() const { return {whole_job_.ranks, whole_job_.num_ranks}; }

  using Facts = std::vector<std::pair<std::string, std::string>>;  // names and values
  /// Compares facts with those of rank 0 (kProgramsDiffer), and agrees on which process sends which
  /// numbers of a step. A failure of the run if not all processes take part.
  std::optional<Failure> agree(const Device& device, const Facts& facts);
  /// `step`: of the run; `slots`: of the ranks of this process. Only process 0 waits.
  void send(Phase phase, std::uint64_t step, std::span<const ReportSlots* const> slots) {
    numbers_.send(phase, steps_before_ + step, step, slots);
  }
  bool take(Phase phase, std::uint64_t step) {
    return numbers_.take(phase, steps_before_ + step, step);
  }
  /// The reports of the other processes.
  const std::vector<std::unique_ptr<ReportSlots>>& slots(Phase phase) const {
    return numbers_.slots(phase);
  }
  /// Ends a run after `steps` steps, the same number on all processes.
  void end_run(std::uint64_t steps) { steps_before_ += steps; }

  /// Heartbeats carry the positions of this process's ranks, until `stop_watching`, which does not
  /// use the group.
  void watch(const Device& device);
  void stop_watching();
  /// The last completed action of every rank as far as it is known here, one note per rank, those
  /// of a failed process first: from this device, from flight records in the folder of the run, and
  /// from the last heartbeats.
  std::vector<Note> last_actions(const Device& device) const;

  /// Sends what this process has recorded to rank 0, which gets all ranks, with times from one
  /// start; elsewhere the list becomes empty. A failure of the run if a process is gone.
  std::optional<Failure> collect(std::vector<RecordedRank>& recorded);
  /// Called by all for the same tensors in the same order; rank 0 gets them.
  std::optional<ParameterValues> read_parameter(Device& device, std::string_view name,
                                                ParamTensor part);

 private:
  bool receive_recorded(const PiperJobRank& rank, std::vector<RecordedAction>& actions);
  std::uint32_t process() const { return group_.launch().rank; }

  std::vector<RankPosition> own_positions(const Device& device) const;

  /// Shared with the thread of the group.
  struct Watched {
    std::mutex mutex;
    const Device* device = nullptr;  // null: no more
  };

  ProcessGroup& group_;
  const std::shared_ptr<Watched> watched_ = std::make_shared<Watched>();
  const std::string out_folder_;
  const PiperJob& whole_job_;
  const ProcessRanks ranks_;  // of this process
  const std::vector<std::uint32_t> process_of_rank_;
  StepNumbers numbers_;
  std::uint64_t steps_before_ = 0;  // of all earlier runs
};

}  // namespace piper::runtime
