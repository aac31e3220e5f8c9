#include "runtime/launch/train.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>

#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/run_facts.h"
#include "runtime/launch/csv_log.h"
#include "runtime/launch/tensorboard_log.h"

namespace piper::runtime {

void LossOverBatches::add(const StepRecord& step) {
  sums_.resize(step.losses.size());
  counts_.resize(step.losses.size());
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::vector<double>& parts = step.microbatch_sums[i];
    sums_[i] += std::accumulate(parts.begin(), parts.end(), 0.0);
    counts_[i] += step.counts[i];
  }
}

double LossOverBatches::value() const {
  double loss = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) loss += sums_[i] / std::max(1.0, counts_[i]);
  return loss;
}

namespace {

/// The smallest multiple of `every` above `step`; without `every` the end.
std::uint64_t next_multiple(std::uint64_t step, std::uint64_t every, std::uint64_t end) {
  if (every == 0) return end;
  const std::uint64_t missing = every - step % every;
  return missing < end - step ? step + missing : end;
}

class Training {
 public:
  Training(Executor& executor, const PiperJob& job, const TrainOptions& options)
      : executor_(executor),
        job_(job),
        options_(options),
        line_(
            options.write ? options.write : [](const std::string&) {}, options.columns,
            options.memory),
        first_(executor.next_step()) {
    const std::uint64_t end = job.first_step + job.steps;
    end_ = options.steps ? first_ + options.steps : std::max(first_, end);
  }

  TrainResult run() {
    if (keep(open())) return std::move(result_);
    train();
    line_.finish();
    result_.steps = executor_.next_step() - first_;
    result_.throughput = throughput(job_, result_.steps, result_.seconds);
    if (!result_.failure) end();
    return std::move(result_);
  }

 private:
  /// Whether there is a failure: the first one is the result.
  bool keep(std::optional<Failure> failure) {
    if (failure && !result_.failure) {
      result_.failure = std::move(failure);
      result_.ended = Ended::failed;
    }
    return result_.failure.has_value();
  }

  std::optional<Failure> open() {
    if (!options_.checkpoint_folder.empty())
      writer_.emplace(
          executor_.state_memory(),
          CheckpointOptions{.out_folder = options_.checkpoint_folder,
                            .keep = job_.checkpoint_keep,
                            .best = job_.checkpoint_best != 0,
                            .run = facts_of(executor_.state_memory(), executor_.data_identity()),
                            .further_updates = job_.optimizer.further_updates});
    return options_.out_folder.empty() ? std::nullopt : open_logs();
  }

  std::optional<Failure> open_logs() {
    const std::string& folder = options_.out_folder;
    const bool goes_on = options_.resumed || first_ > job_.first_step;
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < job_.num_losses; ++i) names.emplace_back(job_.losses[i].name);
    if (auto failure = add_log<MetricsFile>(folder, names, executor_.arena_bytes(), goes_on))
      return failure;
    if (options_.log_csv) {
      const std::string unit = throughput(job_, 0, 0).unit();
      const auto begin = goes_on ? LogFile::Begin::after_those : LogFile::Begin::fresh;
      if (auto failure = add_log<CsvLog>(folder, names, unit, begin)) return failure;
    }
    if (!options_.log_tensorboard) return std::nullopt;
    return add_log<TensorboardLog>(folder, names, goes_on ? std::optional(first_) : std::nullopt);
  }

  template <typename Log, typename... Values>
  std::optional<Failure> add_log(const Values&... values) {
    auto log = std::make_unique<Log>();
    auto failure = log->open(values...);
    logs_.push_back(std::move(log));
    return failure;
  }

  /// Writes to all logs: a failure of one loses no record of the others.
  template <typename Write>
  std::optional<Failure> write_logs(const Write& write) {
    std::optional<Failure> first;
    for (const auto& log : logs_) {
      auto failure = write(*log);
      if (!first) first = std::move(failure);
    }
    return first;
  }

  /// Steps up to the next checkpoint or evaluation, one run after the other.
  void train() {
    for (std::uint64_t step = first_; step < end_ && result_.ended == Ended::finished;) {
      const std::uint64_t stop = std::min(next_multiple(step, job_.checkpoint_every, end_),
                                          next_multiple(step, evaluate_every(), end_));
      const RunResult run =
          executor_.run(Phase::training, stop - step,
                        [&](const StepRecord& record) { return take_step(record, step - first_); });
      step = executor_.next_step();
      result_.ended = run.ended;
      if (keep(run.failure)) return;
      if (run.ended == Ended::stopped || step == end_) return;
      if (multiple_of(step, job_.checkpoint_every)) {
        // The best checkpoint is known when it is written.
        const auto loss = keeps_best() ? evaluate() : std::nullopt;
        if (result_.failure || keep(save(loss))) return;
        if (keeps_best()) continue;
      }
      if (multiple_of(step, evaluate_every())) evaluate();
    }
  }

  static bool multiple_of(std::uint64_t step, std::uint64_t every) {
    return every != 0 && step % every == 0;
  }
  bool keeps_best() const {
    return writer_ && job_.checkpoint_best != 0 && executor_.evaluation_steps() > 0;
  }
  std::uint64_t evaluate_every() const {
    return executor_.evaluation_steps() > 0 ? job_.evaluate_every : 0;
  }

  /// The last checkpoint, which is written while the held-out data is read.
  void end() {
    // A run of no step keeps what it would begin with.
    const bool is_new = executor_.next_step() > first_ || (first_ == end_ && !options_.resumed);
    result_.trained = result_.ended == Ended::finished;
    const bool evaluates = result_.trained && executor_.evaluation_steps() > 0;
    if (evaluates && keeps_best()) result_.held_out_loss = evaluate();
    if (result_.failure || (is_new && keep(save(result_.held_out_loss)))) return;
    if (evaluates && !keeps_best()) result_.held_out_loss = evaluate();
    if (writer_ && !result_.failure) keep(writer_->finish());
  }

  std::optional<Failure> save(std::optional<double> held_out_loss = {}) {
    if (!writer_) return std::nullopt;
    const std::uint64_t step = executor_.next_step();
    if (auto failure = writer_->save(step, held_out_loss)) return failure;
    result_.checkpoint = writer_->folder(step);
    return std::nullopt;
  }

  std::optional<Failure> take_step(const StepRecord& record, std::uint64_t before) {
    if (record.skipped) ++result_.skipped;
    if (!result_.first_loss) result_.first_loss = record.loss;
    result_.last_loss = record.loss;
    result_.seconds += record.seconds;
    StepRecord shown = record;
    shown.local_step += before;
    shown.steps = end_ - first_;
    line_.show(shown);
    return write_logs([&](StepLog& log) { return log.write(record); });
  }

  std::optional<double> evaluate() {
    LossOverBatches held_out;
    const std::uint64_t step = executor_.next_step();
    RunResult run =
        executor_.run(Phase::evaluation, executor_.evaluation_steps(),
                      [&](const StepRecord& record) -> std::optional<Failure> {
                        held_out.add(record);
                        line_.show(record);
                        return write_logs([&](StepLog& log) { return log.write(record, step); });
                      });
    line_.finish();
    result_.ended = run.ended;
    if (keep(std::move(run.failure)) || run.ended != Ended::finished) return std::nullopt;
    const double loss = held_out.value();
    result_.held_out_losses.push_back({step, loss});
    if (keep(write_logs([&](StepLog& log) { return log.write_held_out(step, loss); })))
      return std::nullopt;
    if (options_.write && step < end_) {
      char text[96];
      std::snprintf(text, sizeof text, "step %llu: held-out loss %.4f\n",
                    static_cast<unsigned long long>(step), loss);
      options_.write(text);
    }
    return loss;
  }

  Executor& executor_;
  const PiperJob& job_;
  const TrainOptions& options_;
  ProgressLine line_;
  std::vector<std::unique_ptr<StepLog>> logs_;
  std::optional<CheckpointWriter> writer_;
  const std::uint64_t first_;
  std::uint64_t end_ = 0;
  TrainResult result_;
};

}  // namespace

TrainResult train(Executor& executor, const PiperJob& job, const TrainOptions& options) {
  return Training(executor, job, options).run();
}

}  // namespace piper::runtime
