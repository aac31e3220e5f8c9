#pragma once
// The output of a run: a progress line, and one JSON object per step in OUT/metrics.jsonl.
//
//   if (auto failure = keep_earlier_metrics("out", kept)) ...;
//   MetricsFile file;
//   if (auto failure = file.open("out", loss_names, peak_bytes)) ...;
//   ProgressLine line(stderr_writer, columns_of_terminal, "42MiB");
//   executor.run(Phase::training, steps, [&](const StepRecord& step) { line.show(step); return file.write(step); });
//   line.finish();
//
// A record of a training step (numbers that are not finite are null):
//   {"schema":1,"phase":"training","step":1,"loss":5.54,"losses":{"gpt.loss.0":5.54},"microbatches":{"gpt.loss.0":[1419.2,1418.9]},
//    "norm":1.2,"lr":0.002,"seconds":0.41,"tokens_per_second":9990,"peak_bytes":[1048576]}
// If no input has several integers per sample there are no tokens, and `samples_per_second` is
// written instead. A record of an evaluation step also has "after": the number of training steps
// before it. `step` counts from 1; `microbatches` are sums, `losses` means over the batch.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/executor/executor.h"
#include "runtime/launch/log_file.h"
#include "runtime/launch/step_log.h"

namespace piper::runtime {

/// The object above, without the newline. `after`: the number of training steps before an
/// evaluation.
std::string metrics_json(const StepRecord& step, std::span<const std::string> loss_names,
                         std::span<const std::uint64_t> peak_bytes, std::uint64_t after = 0);

/// Removes from OUT/metrics.jsonl and OUT/metrics.csv the lines that belong to later steps than the
/// first `steps`, which a resumed run repeats. No other process may write to the folder.
std::optional<Failure> trim_metrics(const std::string& out_folder, std::uint64_t steps);

/// Moves the metrics of an earlier run aside, so that none are lost: OUT/metrics.jsonl to
/// OUT/metrics.1.jsonl, OUT/metrics.csv to OUT/metrics.1.csv, and OUT/tensorboard, if it has event
/// files, to OUT/tensorboard.1, or the first number that is free for all three. No other process
/// may write to the folder. `kept_as` are their new names, as in `A, B and C`; empty when there were
/// none.
std::optional<Failure> keep_earlier_metrics(const std::string& out_folder, std::string& kept_as);

class MetricsFile : public StepLog {
 public:
  /// Makes the folder and OUT/metrics.jsonl, which must not exist unless this run's lines are to
  /// follow those in it (`append`).
  std::optional<Failure> open(const std::string& out_folder, std::vector<std::string> loss_names,
                              std::vector<std::uint64_t> peak_bytes, bool append = false);
  std::optional<Failure> write(const StepRecord& step, std::uint64_t after = 0) override;
  /// Writes nothing: the file has the batches of an evaluation.
  std::optional<Failure> write_held_out(std::uint64_t, double) override { return std::nullopt; }

 private:
  LogFile file_;
  std::vector<std::string> loss_names_;
  std::vector<std::uint64_t> peak_bytes_;
};

/// One line that is rewritten on a terminal, or a line every few seconds elsewhere:
///   step 120/400  loss 2.4312  norm 0.83  lr 1.9e-03  9.9 k tokens/s  42MiB  left 1:55
class ProgressLine {
 public:
  using Write = std::function<void(const std::string&)>;
  using Clock = std::chrono::steady_clock;

  // of the terminal at the moment; 0 or none: this is no terminal
  using Columns = std::function<unsigned()>;

  /// `memory`: the memory of the devices, as shown in the line; it may be empty.
  ProgressLine(Write write, Columns columns, std::string memory);
  void show(const StepRecord& step, Clock::time_point now = Clock::now());
  /// Leaves the cursor on a new line.
  void finish();

  /// A line wider than `width` leaves out whole fields, the least important first.
  static std::string text(const StepRecord& step, double per_second, const std::string& memory,
                          double seconds_left, std::size_t width = std::string::npos);

 private:
  Write write_;
  Columns columns_;
  std::string memory_;
  std::optional<Clock::time_point> shown_;
  double recent_steps_ = 0, recent_seconds_ = 0, recent_items_ = 0;  // older ones fade
  bool drawn_ = false;                                               // the line has text
};

}  // namespace piper::runtime
