#include "runtime/executor/step_reports.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/device/state.h"

namespace piper::runtime {

StepReports::StepReports(const PiperJob& job, const DeviceRun& run)
    : job_(job),
      first_step_(run.first_step),
      data_(*run.data),
      batches_(run.data->batches()),
      batch_(batches_.taken > 0 ? batches_.batch : job.samples_per_step),
      losses_(job.num_losses),
      counts_(job.num_losses),
      sums_(job.num_losses),
      last_(std::chrono::steady_clock::now()) {
  record_.phase = run.phase;
  record_.steps = run.steps;
  record_.samples = batch_;
}

/// For a loss without a mask.
double StepReports::elements_that_count(std::uint32_t loss) const {
  const std::uint64_t count = job_.losses[loss].count;
  return static_cast<double>(record_.samples == batch_ ? count : count / batch_ * record_.samples);
}

/// The programs' count over the samples that pad a short batch: each repeats the last sample of the
/// data, whose targets are read here.
double StepReports::counted_beside_data(const PiperLoss& loss) {
  const std::uint64_t filled = batch_ - record_.samples;
  if (filled == 0) return 0;
  const PiperInput& targets = job_.inputs[loss.targets];
  std::uint64_t elements = 1;
  for (std::uint32_t d = 0; d < targets.num_dims; ++d)
    elements *= d == targets.sample_dim ? 1 : static_cast<std::uint64_t>(targets.dims[d]);
  std::vector<std::int64_t> last(elements);
  auto failure = data_.load(loss.targets, record_.step, record_.samples - 1, 1, last.data());
  if (failure && !failure_) {
    failure_ = std::move(failure);
    failure_->step = record_.step;
    failure_->place = location_of({}, data_line(job_, record_.phase));
  }
  const auto counted =
      last.size() - static_cast<std::size_t>(std::count(last.begin(), last.end(), loss.ignore));
  return static_cast<double>(counted) * static_cast<double>(filled);
}

/// A step that was not skipped has finite losses. A process that does not know the norm leaves the
/// judgement to the one that does.
void StepReports::refuse_non_finite() {
  if (record_.skipped || failure_ || !record_.gradient_norm) return;
  for (std::uint32_t loss = 0; loss < job_.num_losses; ++loss) {
    double sum = 0;
    for (const double value : sums_[loss]) sum += value;
    if (std::isfinite(sum)) continue;
    failure_ =
        Failure{.code = kNonFinite,
                .message = "the loss `" + std::string(job_.losses[loss].name) + "` is " +
                           (std::isnan(sum) ? "nan" : "infinite") + " at step `" +
                           std::to_string(record_.step + 1) + "`, and the gradient norm is finite"};
    failure_->step = record_.step;
    return;
  }
}

const StepRecord& StepReports::take(std::uint64_t step, std::span<const ReportSlots* const> ranks) {
  const PiperJob& job = job_;
  const std::uint64_t slot = step % kReportSlots;
  record_.step = first_step_ + step;
  record_.local_step = step;
  record_.gradient_norm.reset();
  if (batches_.taken > 0) record_.samples = batches_.samples_of(record_.step);
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
      if (job.losses[loss].masked != 0) {
        count = sums_[loss].back() - counted_beside_data(job.losses[loss]);
        sums_[loss].pop_back();
      } else {
        count = elements_that_count(loss);
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
  record_.skipped = record_.phase == Phase::training && job.optimizer.skips != 0 &&
                    record_.gradient_norm && !(*record_.gradient_norm <= job.optimizer.skip_above);
  record_.loss = 0;
  for (const double loss : losses_) record_.loss += loss;
  if (job.optimizer.skips != 0 && record_.phase == Phase::training) refuse_non_finite();
  record_.losses = losses_;
  record_.counts = counts_;
  record_.microbatch_sums = sums_;
  record_.learning_rate = record_.phase == Phase::training
                              ? scalars_of_step(job.optimizer, record_.step).learning_rate
                              : 0;
  const auto now = std::chrono::steady_clock::now();
  record_.seconds = std::chrono::duration<double>(now - last_).count();
  record_.throughput = throughput(job, 1, record_.seconds);
  if (record_.samples != batch_)
    record_.throughput.per_second *=
        static_cast<double>(record_.samples) / static_cast<double>(batch_);
  last_ = now;
  return record_;
}

Throughput throughput(const PiperJob& job, std::uint64_t steps, double seconds) {
  const bool tokens = job.tokens_per_step > job.samples_per_step;
  const std::uint64_t items = tokens ? job.tokens_per_step : job.samples_per_step;
  return {seconds > 0 ? static_cast<double>(items) * static_cast<double>(steps) / seconds : 0,
          tokens};
}

}  // namespace piper::runtime
