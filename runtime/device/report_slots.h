#pragma once
// The reports of a rank's last steps, until the thread that called `run` has taken them.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/abi.h"
#include "runtime/failure.h"
#include "runtime/phase.h"

namespace piper::runtime {

/// Number of steps whose reports may wait for the thread that called `run`; a rank that is further
/// ahead waits.
inline constexpr std::uint64_t kReportSlots = 8;
/// Microbatches per loss that a report holds at most.
inline constexpr std::uint64_t kMaxReportValues = 65536;

/// The reports of one rank for the last kReportSlots steps. They are written before the end of the
/// step is signalled.
struct ReportSlots {
  std::uint64_t capacity = 0;  // values per loss
  std::uint32_t num_losses = 0;
  struct Free {
    void operator()(double* values) const { std::free(values); }
  };
  // [slot][loss][capacity]; pages stay untouched until written, because most of many ranks report
  // little.
  std::unique_ptr<double[], Free> values;
  std::vector<std::uint32_t> counts;  // [slot][loss]; 0: this rank did not report it
  std::vector<double> norms;          // [slot]
  std::vector<std::uint8_t> has_norm;

  /// For the losses of a job and its microbatches. Throws std::bad_alloc.
  void prepare(const PiperJob& job);
  void clear(std::uint64_t step);
  /// Keeps a report of step `step` of the run, which is `global_step` of its phase. Returns a
  /// failure, without rank and location, if a number is not finite or the report does not fit the
  /// job.
  std::optional<Failure> keep(const PiperJob& job, Phase phase, std::uint64_t step,
                              std::uint64_t global_step, std::uint32_t subject,
                              const double* reported, std::uint32_t count);
};

}  // namespace piper::runtime
