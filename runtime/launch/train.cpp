#include "runtime/launch/train.h"

#include <algorithm>
#include <numeric>

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

TrainResult train(Executor& executor, const PiperJob& job, const TrainOptions& options) {
  TrainResult result;
  const auto fail = [&](std::optional<Failure> failure) {
    result.ended = Ended::failed;
    result.failure = std::move(failure);
    return result;
  };
  const std::vector<std::uint64_t> bytes = executor.arena_bytes();
  MetricsFile metrics;
  const bool keeps = !options.out_folder.empty();
  if (keeps) {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < job.num_losses; ++i) names.emplace_back(job.losses[i].name);
    if (auto failure =
            metrics.open(options.out_folder, std::move(names), bytes, executor.next_step() > 0))
      return fail(std::move(failure));
  }
  ProgressLine line(
      options.write ? options.write : [](const std::string&) {}, options.columns, options.memory);

  const std::uint64_t end = job.first_step + job.steps;
  const std::uint64_t steps =
      options.steps ? options.steps : end - std::min(end, executor.next_step());
  RunResult run =
      executor.run(Phase::training, steps, [&](const StepRecord& step) -> std::optional<Failure> {
        if (!result.first_loss) result.first_loss = step.loss;
        result.last_loss = step.loss;
        result.seconds += step.seconds;
        line.show(step);
        return keeps ? metrics.write(step) : std::nullopt;
      });
  line.finish();
  result.ended = run.ended;
  result.steps = run.steps;
  result.throughput = throughput(job, run.steps, result.seconds);
  if (run.failure) return fail(std::move(run.failure));
  result.trained = run.ended == Ended::finished;
  if (!result.trained || executor.evaluation_steps() == 0) return result;

  LossOverBatches held_out;
  run = executor.run(Phase::evaluation, executor.evaluation_steps(),
                     [&](const StepRecord& step) -> std::optional<Failure> {
                       held_out.add(step);
                       line.show(step);
                       return keeps ? metrics.write(step) : std::nullopt;
                     });
  line.finish();
  result.ended = run.ended;
  if (run.failure) return fail(std::move(run.failure));
  if (run.ended == Ended::finished) result.held_out_loss = held_out.value();
  return result;
}

}  // namespace piper::runtime
