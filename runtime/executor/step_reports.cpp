#include "runtime/executor/step_reports.h"

#include <algorithm>
#include <limits>

#include "runtime/device/state.h"

namespace piper::runtime {

StepReports::StepReports(const PiperJob& job, Phase phase, std::uint64_t first_step, std::uint64_t steps)
    : job_(job), first_step_(first_step), losses_(job.num_losses), counts_(job.num_losses), sums_(job.num_losses), last_(std::chrono::steady_clock::now()) {
  record_.phase = phase;
  record_.steps = steps;
}

const StepRecord& StepReports::take(std::uint64_t step, std::span<const ReportSlots* const> ranks) {
  const PiperJob& job = job_;
  const std::uint64_t slot = step % kReportSlots;
  record_.step = first_step_ + step;
  record_.local_step = step;
  record_.gradient_norm.reset();
  for (std::uint32_t loss = 0; loss < job.num_losses; ++loss) {
    sums_[loss].clear();
    // A loss that no rank of this process holds is unknown here.
    losses_[loss] = std::numeric_limits<double>::quiet_NaN();
    for (const ReportSlots* rank : ranks) {
      const ReportSlots& reports = *rank;
      const std::uint64_t row = slot * reports.num_losses + loss;
      if (reports.counts[row] == 0) continue;
      const double* values = reports.values.get() + row * reports.capacity;
      sums_[loss].assign(values, values + reports.counts[row]);
      double& count = counts_[loss];
      count = static_cast<double>(job.losses[loss].count);
      if (job.losses[loss].masked != 0) {
        count = sums_[loss].back();
        sums_[loss].pop_back();
      }
      double sum = 0;
      for (const double value : sums_[loss]) sum += value;
      losses_[loss] = sum / std::max(1.0, count);
      break;
    }
  }
  for (const ReportSlots* rank : ranks) {
    if (!rank->has_norm[slot]) continue;
    record_.gradient_norm = rank->norms[slot];
    break;
  }
  record_.loss = 0;
  for (const double loss : losses_) record_.loss += loss;
  record_.losses = losses_;
  record_.counts = counts_;
  record_.microbatch_sums = sums_;
  record_.learning_rate = record_.phase == Phase::training ? scalars_of_step(job.optimizer, record_.step).learning_rate : 0;
  const auto now = std::chrono::steady_clock::now();
  record_.seconds = std::chrono::duration<double>(now - last_).count();
  record_.throughput = throughput(job, 1, record_.seconds);
  last_ = now;
  return record_;
}

Throughput throughput(const PiperJob& job, std::uint64_t steps, double seconds) {
  const bool tokens = job.tokens_per_step > job.samples_per_step;
  const std::uint64_t items = tokens ? job.tokens_per_step : job.samples_per_step;
  return {seconds > 0 ? static_cast<double>(items) * static_cast<double>(steps) / seconds : 0, tokens};
}

}  // namespace piper::runtime
