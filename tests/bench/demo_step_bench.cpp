// The cost of a step of the demo beside the same step in eager LibTorch: on four local devices of
// one thread each, and on one device with as many threads as the eager one.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "frontend/tools/train_job.h"
#include "runtime/data/step_data.h"
#include "tests/bench/demo_program.h"
#include "tests/bench/eager_gpt.h"

namespace piper::bench {
namespace {

constexpr std::uint64_t kStepsPerTurn = 2;
constexpr EagerGpt::Sizes kSizes{.layers = 4, .dim = 256, .heads = 8, .vocab = 256, .seq = 128};
constexpr std::uint64_t kBatch = 32;

struct Step {
  std::uint64_t number;
  double loss, learning_rate;
};

/// Both trains, in turns of kStepsPerTurn steps on the same samples from the same first values.
class Duel {
 public:
  /// The demo on its four devices or, with `threads`, on one device with that number. False: the
  /// reason is in `error`.
  bool open(std::uint32_t threads);
  /// One turn of each; false: `error` says why.
  bool turn(Cost& piper, Cost& eager);

  std::string error;
  double loss_difference = 0;  // the largest so far, relative
  int threads = 0;             // of the eager one

 private:
  DemoProgram demo_;
  std::unique_ptr<tools::TrainJob> job_;
  std::unique_ptr<runtime::StepData> data_;
  std::unique_ptr<EagerGpt> eager_;
  std::vector<std::int64_t> tokens_ = std::vector<std::int64_t>(kBatch * kSizes.seq),
                            targets_ = tokens_;
};

bool Duel::open(std::uint32_t threads_of_one) {
  if (demo_.open()) {
    if (threads_of_one != 0) demo_.use_one_device();
    auto options = tools::prepare_train(demo_.session(), demo_.subject());
    if (options && threads_of_one != 0) options->threads = threads_of_one;
    if (options)
      job_ = tools::make_train_job(demo_.session(), demo_.subject(), false, *options, "", nullptr);
  }
  if (!job_ || !job_->job->generated()) {
    error = demo_.error();
    return false;
  }
  const PiperJob& job = job_->job->tables();
  runtime::Failure failure;
  data_ = runtime::open_data(job.data, {job.inputs, job.num_inputs}, job.seed,
                             runtime::DataUse::training, failure);
  if (!data_) {
    error = failure.message;
    return false;
  }
  if (job.num_inputs != 2 || std::string(job.inputs[0].name) != "tokens" ||
      job.samples_per_step != kBatch ||
      job_->executor->parameter_names().size() != 4 + 8 * kSizes.layers) {
    error = "the demo's program is not the one that the eager model was written after";
    return false;
  }
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  threads = static_cast<int>(threads_of_one != 0 ? threads_of_one
                                                 : std::min<unsigned>(job.num_ranks, cores));
  eager_ = std::make_unique<EagerGpt>(kSizes, threads, [&](const std::string& name) {
    const auto read = job_->executor->read_parameter(name, runtime::ParamTensor::values);
    return read ? read->values : std::vector<double>();
  });
  return true;
}

bool Duel::turn(Cost& piper, Cost& eager) {
  std::vector<Step> steps;
  runtime::RunResult result;
  piper = measure([&] {
    result = job_->executor->run(
        runtime::Phase::training, kStepsPerTurn, [&](const runtime::StepRecord& record) {
          steps.push_back({record.step, record.loss, record.learning_rate});
          return std::nullopt;
        });
  });
  if (result.failure) {
    error = runtime::describe(*result.failure);
    return false;
  }
  std::vector<double> losses;
  eager = measure([&] {
    for (const Step& step : steps) {
      data_->load(0, step.number, 0, kBatch, tokens_.data());
      data_->load(1, step.number, 0, kBatch, targets_.data());
      losses.push_back(eager_->step(tokens_.data(), targets_.data(), kBatch, step.learning_rate));
    }
  });
  for (std::size_t i = 0; i < steps.size(); ++i)
    loss_difference = std::max(loss_difference, std::abs(steps[i].loss - losses[i]) / losses[i]);
  // f32 in another order of summation differs by about 2e-7, an optimizer without weight decay by
  // 8e-6.
  if (loss_difference < 3e-6) return true;
  error = "the two do not compute the same training: their losses differ by " +
          std::to_string(loss_difference);
  return false;
}

/// The argument: threads of the one device, or 0 for the demo's four devices.
void BM_DemoStep(benchmark::State& state) {
  Duel duel;
  Cost piper, eager;
  // The first turn touches all memory and starts all threads.
  if (!duel.open(static_cast<std::uint32_t>(state.range(0))) || !duel.turn(piper, eager))
    return state.SkipWithError(duel.error.c_str());
  std::vector<double> piper_wall, piper_cpu, eager_wall, eager_cpu, wall_ratio, cpu_ratio;
  for (auto _ : state) {
    if (!duel.turn(piper, eager)) return state.SkipWithError(duel.error.c_str());
    state.SetIterationTime(piper.wall);
    piper_wall.push_back(piper.wall);
    piper_cpu.push_back(piper.cpu);
    eager_wall.push_back(eager.wall);
    eager_cpu.push_back(eager.cpu);
    wall_ratio.push_back(piper.wall / eager.wall);
    cpu_ratio.push_back(piper.cpu / eager.cpu);
  }
  constexpr double kMs = 1e3 / static_cast<double>(kStepsPerTurn);
  state.counters["step_wall_ms"] = kMs * median(piper_wall);
  state.counters["step_cpu_ms"] = kMs * median(piper_cpu);
  state.counters["eager_wall_ms"] = kMs * median(eager_wall);
  state.counters["eager_cpu_ms"] = kMs * median(eager_cpu);
  state.counters["eager_threads"] = duel.threads;
  state.counters["wall_ratio_to_eager"] = median(wall_ratio);
  state.counters["cpu_ratio_to_eager"] = median(cpu_ratio);
  state.counters["largest_loss_difference"] = duel.loss_difference;
}

BENCHMARK(BM_DemoStep)
    ->ArgName("threads")
    ->Arg(0)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(7);

}  // namespace
}  // namespace piper::bench
