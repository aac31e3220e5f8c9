#pragma once
// A whole training run: steps with progress and metrics, checkpoints and held-out data between
// them, and both at the end.
//
//   TrainResult result = train(*executor, job, {.out_folder = "out", .write = to_stderr, .columns = columns_of_stderr});
//   if (result.failure) report(*result.failure);
//   print(result.last_loss, result.held_out_loss);

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi.h"
#include "runtime/executor/executor.h"
#include "runtime/launch/metrics.h"

namespace piper::runtime {

struct TrainOptions {
  std::uint64_t steps = 0;  // 0: up to the last step of the job
  // metrics.jsonl; empty: none. Flight records follow ExecutorOptions::out_folder.
  std::string out_folder = {};
  // Checkpoints: those of the job's line, one at the end and one when the run is stopped; empty:
  // none. All processes of a run have it, and rank 0 alone has the folder of metrics.
  std::string checkpoint_folder = {};
  // Metrics follow those of the run that is resumed.
  bool resumed = false;
  // Logs beside metrics.jsonl: metrics.csv, and event files in the folder `tensorboard`.
  bool log_csv = false, log_tensorboard = false;
  ProgressLine::Write write = {};      // shows progress; empty: none
  ProgressLine::Columns columns = {};  // of the terminal that shows it; none: no terminal
  std::string memory = {};             // memory of the devices, as progress shows it
};

/// The loss over the held-out data during training.
struct HeldOutLoss {
  std::uint64_t step = 0;  // after so many steps of training
  double loss = 0;
};

struct TrainResult {
  Ended ended = Ended::finished;
  std::optional<Failure> failure = {};
  std::uint64_t steps = 0;  // of training, in this run
  std::optional<double> first_loss = {}, last_loss = {};
  // Mean over the held-out data; none without it, or when training did not finish.
  std::optional<double> held_out_loss = {};
  std::vector<HeldOutLoss> held_out_losses = {};  // of all evaluations
  std::uint64_t skipped = 0;                      // steps that `skip_step` left out
  // All steps of training have ended; a failure is then one of the held-out data.
  bool trained = false;
  double seconds = 0;           // of training
  Throughput throughput = {};   // over all of training
  std::string checkpoint = {};  // the folder of the last one; empty: none was written
};

/// The loss over several batches: each element that counts has the same weight, however many a
/// batch has.
class LossOverBatches {
 public:
  void add(const StepRecord& step);
  double value() const;

 private:
  std::vector<double> sums_, counts_;  // per loss
};

TrainResult train(Executor& executor, const PiperJob& job, const TrainOptions& options);

}  // namespace piper::runtime
