#pragma once
// Runs a PiperJob on a device: the programs of all ranks of this process, step by step.
//
// Guarantees: `run` returns only when nothing of it is still running. A failure on one rank
// releases all others; the first failure is the one that is reported. A stop ends all ranks at the
// same step. Nothing throws. In a run of several processes each has an executor for its rank: they
// stop at the same step, all learn of the first failure, and rank 0 has the numbers of a step,
// recorded times and parameters of all.
//
//   Failure failure;
//   std::unique_ptr<Executor> executor = Executor::create(job, make_cpu_device(), {}, failure);
//   if (!executor) return report(failure);
//   RunResult result = executor->run(Phase::training, 100, [&](const StepRecord& step) { ...; return std::nullopt; });
//   RunResult held_out = executor->run(Phase::evaluation, executor->evaluation_steps(), ...);
//   std::vector<double> weight = executor->read_parameter("head.0.out", ParamTensor::values)->values;

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi.h"
#include "runtime/checkpoint/state_memory.h"
#include "runtime/data/step_data.h"
#include "runtime/device/device.h"
#include "runtime/failure.h"
#include "runtime/phase.h"

namespace piper::runtime {

class TextFiles;

enum class Ended : std::uint8_t {
  finished,  // all steps that were asked for
  stopped,   // request_stop(), at a common step boundary
  failed,
};

struct RunResult {
  Ended ended = Ended::finished;
  std::uint64_t steps = 0;              // ended on all ranks
  std::optional<Failure> failure = {};  // exactly when failed
};

/// Throughput in tokens if an input has several integers per sample, as text has, otherwise in
/// samples.
struct Throughput {
  double per_second = 0;
  bool tokens = false;
  std::string unit() const { return tokens ? "tokens" : "samples"; }
};
Throughput throughput(const PiperJob& job, std::uint64_t steps, double seconds);

/// The data of a step that has ended on all ranks. Valid during the callback.
struct StepRecord {
  Phase phase = Phase::training;
  // of training, counted from 0; of evaluation: number of the step in it
  std::uint64_t step = 0;
  std::uint64_t local_step = 0;  // since this run began
  std::uint64_t steps = 0;       // asked for in this run
  double loss = 0;               // sum of the losses
  // Mean per loss of the job, in its order; NaN if this process does not know it.
  std::span<const double> losses;
  std::span<const double> counts;  // the number of elements in each mean
  // of the batch, without those that pad a short batch of held-out data
  std::uint64_t samples = 0;
  std::span<const std::vector<double>> microbatch_sums;  // per loss, as reported
  std::optional<double> gradient_norm;                   // before clipping
  double learning_rate = 0;
  bool skipped = false;  // by `skip_step`: no parameter changed
  double seconds = 0;    // since the step before ended
  Throughput throughput = {};
};

/// Called in step order, on the thread that called `run`. A failure ends the run at the next step
/// boundary.
using OnStep = std::function<std::optional<Failure>(const StepRecord&)>;

/// The tensor of a parameter.
enum class ParamTensor : std::uint8_t { values, gradient, slot0, slot1, slot2, slot3 };

struct ParameterValues {
  std::string name;
  std::vector<std::int64_t> dims;
  std::vector<double> values;  // row-major
};

struct ExecutorOptions : DeviceOptions {
  TextFiles* texts = nullptr;  // data that `create` need not read again; null: none
  // Keep when the actions of the last training step ran, and how long they took.
  bool record = false;
};

class Executor {
 public:
  /// Checks the tables, opens data and the device. The job with all it points to, and a group of
  /// processes, must outlive the executor. Null with the reason in `failure`; null without one when
  /// stopped.
  static std::unique_ptr<Executor> create(const PiperJob& job, std::unique_ptr<Device> device,
                                          const ExecutorOptions& options, Failure& failure,
                                          const Processes& processes = {});
  ~Executor();

  /// Runs `steps` steps of one phase. Training continues where the last run ended. After a failure
  /// nothing can run.
  RunResult run(Phase phase, std::uint64_t steps, const OnStep& on_step = {});

  /// Ends the run in progress, and every later one, at a common step boundary. May be called from a
  /// signal handler.
  void request_stop() { stop_requested_.store(true); }
  bool stop_requested() const { return stop_requested_.load(); }

  /// Steps of evaluation that cover the held-out data once; 0 without held-out data.
  std::uint64_t evaluation_steps() const { return held_out().taken; }
  /// The held-out data as batches; none if the job has no evaluation program.
  Batches held_out() const;
  /// Training steps that ended, the job's first step included.
  std::uint64_t next_step() const;

  /// The state of all ranks between two runs, for checkpoints. The executor must outlive it.
  StateMemory state_memory() const;
  /// The data of training and a fingerprint of its contents (StepData::identity), as they were when
  /// this was first asked for.
  std::string data_identity() const;

  /// A tensor of a parameter, from its counted owner; empty if no rank has it (or no such slot), or
  /// it cannot be read. With several processes all read the same tensors in the same order, and
  /// rank 0 gets them.
  std::optional<ParameterValues> read_parameter(std::string_view name, ParamTensor part) const;
  /// Names of all parameters of the job, sorted.
  std::vector<std::string> parameter_names() const;

  /// The last step of the last run of training, with `ExecutorOptions::record`; with several
  /// processes on rank 0.
  const std::vector<RecordedRank>& recorded() const;

  /// Deviations of the runs from the fast path, each with its reason: the results are right.
  std::vector<Failure> warnings() const;

  /// Planned bytes of the arena, per rank of the run.
  std::vector<std::uint64_t> arena_bytes() const;
  /// One past the last byte that a run has written, per local rank; only with
  /// Options::check_memory, else zeros.
  std::vector<std::uint64_t> touched_bytes() const;

  /// True after a run that opened a plugin whose destructors take long and do nothing: flush and
  /// leave with `_exit`.
  bool skip_destructors() const;

 private:
  struct Parts;
  explicit Executor(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
  std::atomic<bool> stop_requested_{false};
};

}  // namespace piper::runtime
