#pragma once
// Brings the reports of a step from several processes to rank 0: losses and norms are where the
// plan has them, and rank 0 keeps and prints them.
//
//   StepNumbers numbers(job, group);
//   numbers.agree(phase, subjects);                   // on all processes: which one sends which numbers
//   numbers.send(number, slots, step);                // when a step has ended here
//   numbers.take(number, step);                       // rank 0: false while some have not arrived
//   numbers.slots();                                  // beside those of its own rank

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device/report_slots.h"
#include "runtime/phase.h"
#include "runtime/processes/process_group.h"

namespace piper::runtime {

class StepNumbers {
 public:
  StepNumbers(const PiperJob& job, ProcessGroup& group) : job_(job), group_(group) {}

  /// For every loss and for the norm, the lowest rank that reports it sends it; a rank that does
  /// not know its subjects in advance always sends. A failure of the run if a rank does not say
  /// what it reports.
  std::optional<Failure> agree(Phase phase,
                               const std::optional<std::vector<std::uint32_t>>& subjects);

  /// `step`: of the run; `number`: over all runs.
  /// `ranks`: of this process. If several report the same loss, the first counts: they hold equal
  /// sums.
  void send(Phase phase, std::uint64_t number, std::uint64_t step,
            std::span<const ReportSlots* const> ranks);
  bool take(Phase phase, std::uint64_t number, std::uint64_t step);
  /// The reports of the ranks that send; kept for kReportSlots steps.
  const std::vector<std::unique_ptr<ReportSlots>>& slots(Phase phase) const {
    return of_[static_cast<std::size_t>(phase)].slots;
  }

 private:
  bool keep_values(Phase phase, ReportSlots& slots, const std::vector<double>& values,
                   std::uint64_t step) const;

  struct PhaseNumbers {
    bool sends = false;
    std::vector<std::uint32_t> from;                  // on rank 0
    std::vector<std::unique_ptr<ReportSlots>> slots;  // beside these
    // Beside these: one more than the last number.
    std::vector<std::uint64_t> taken;
  };
  const PiperJob& job_;
  ProcessGroup& group_;
  PhaseNumbers of_[2];
};

}  // namespace piper::runtime
