#include "runtime/device/report_slots.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <string>

namespace piper::runtime {

namespace {

/// A common remedy for numbers that are not finite; before the first update it could not have
/// helped.
const char* hint_at(std::uint64_t step, bool clips) {
  if (step == 0) return "no update has been made yet: check the data and the initial weights";
  if (clips)
    return "a smaller learning rate, a longer warm-up or a smaller `clip` on the `optim` line often helps";
  return "a smaller learning rate, a longer warm-up or `clip` on the `optim` line often helps";
}

}  // namespace

void ReportSlots::prepare(const PiperJob& job) {
  num_losses = job.num_losses;
  capacity = std::clamp<std::uint64_t>(job.samples_per_step + 1, 1, kMaxReportValues);
  const std::size_t elements = kReportSlots * num_losses * capacity;
  values.reset(static_cast<double*>(std::calloc(elements, sizeof(double))));
  if (!values && elements > 0) throw std::bad_alloc();
  counts.assign(kReportSlots * num_losses, 0);
  norms.assign(kReportSlots, 0.0);
  has_norm.assign(kReportSlots, 0);
}

void ReportSlots::clear(std::uint64_t step) {
  const std::uint64_t slot = step % kReportSlots;
  std::fill_n(counts.begin() + static_cast<std::ptrdiff_t>(slot * num_losses), num_losses, 0u);
  has_norm[slot] = 0;
}

std::optional<Failure> ReportSlots::keep(const PiperJob& job, Phase phase, std::uint64_t step,
                                         std::uint64_t global_step, std::uint32_t subject,
                                         const double* reported, std::uint32_t count) {
  const bool is_norm = subject == PIPER_NORM;
  if (is_norm ? count != 1 : (subject >= num_losses || count > capacity)) {
    return Failure{.code = kBadJob,
                   .message = "a report of " + std::to_string(count) +
                              (count == 1 ? " value" : " values") + " does not fit the job"};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (std::isfinite(reported[i])) continue;
    const std::string value = std::isnan(reported[i]) ? "nan" : "infinite";
    if (phase == Phase::evaluation) {
      return Failure{
          .code = kNonFinite,
          .message =
              "the held-out loss `" + std::string(job.losses[subject].name) + "` is " + value,
          .hint =
              "training had finite numbers in every step: check these samples of the held-out data, and whether they resemble the training data"};
    }
    // A step that is skipped has changed nothing; a loss whose step was not is found when the
    // reports of all ranks are together.
    if (job.optimizer.skips != 0) continue;
    const std::string what =
        is_norm ? "the gradient norm" : "the loss `" + std::string(job.losses[subject].name) + "`";
    return Failure{
        .code = kNonFinite,
        .message = what + " is " + value + " at step `" + std::to_string(global_step + 1) + "`",
        .hint = hint_at(global_step, job.optimizer.clips != 0)};
  }
  const std::uint64_t slot = step % kReportSlots;
  if (is_norm) {
    norms[slot] = reported[0];
    has_norm[slot] = 1;
    return std::nullopt;
  }
  const std::uint64_t row = slot * num_losses + subject;
  std::memcpy(values.get() + row * capacity, reported, count * sizeof(double));
  counts[row] = count;
  return std::nullopt;
}

}  // namespace piper::runtime
