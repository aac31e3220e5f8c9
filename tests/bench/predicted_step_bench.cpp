// The predicted time of a step beside that of real runs on two devices: schedules with clearly
// different bubbles, whose operations take at least 10 ms each. Calibration and measurement
// alternate.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <sstream>

#include "frontend/service/cost_text.h"
#include "frontend/tools/profile.h"
#include "frontend/tools/train_job.h"
#include "tests/bench/measure.h"

namespace piper::bench {
namespace {

constexpr std::uint64_t kStepsPerTurn = 6;
constexpr std::int64_t kRounds = 5;

/// The first decile: close to the time of a machine at rest.
double tenth(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 10];
}

/// One train, ready to run: `clip` makes each step wait for the one before.
class Run {
 public:
  Run(const std::string& schedule, int microbatches, bool records) {
    files_.add(
        "net.pipe",
        "use std.models.mlp\nuse std.schedules." + schedule +
            "\nmesh pair(pp: 2)\n"
            "train net = mlp(layers: 4, features: 512, hidden: 2048, classes: 16) on pair {\n    data:  synthetic(batch: 512, classes: 16)\n"
            "    optim: sgd(lr: 0.001, clip: 1.0)\n    steps: 1000\n    " +
            schedule + "(pp, " + std::to_string(microbatches) + ")\n}\n");
    arguments_.command = tools::Command::train;
    if (records) arguments_.profile = "costs.json";
    session_.emplace(console_, arguments_);
  }
  /// False: `error` says why.
  bool open() {
    if (!session_->open("net.pipe")) return false;
    subject_ = session_->subject("", true);
    const auto options = subject_ ? tools::prepare_train(*session_, *subject_) : std::nullopt;
    if (options) job_ = tools::make_train_job(*session_, *subject_, false, *options, "", nullptr);
    return job_ != nullptr && job_->job->generated();
  }
  /// Seconds of each step except the first, which includes start-up work of the run.
  bool steps(std::vector<double>& seconds) {
    bool first = true;
    const runtime::RunResult result = job_->executor->run(runtime::Phase::training, kStepsPerTurn,
                                                          [&](const runtime::StepRecord& record) {
                                                            if (!std::exchange(first, false))
                                                              seconds.push_back(record.seconds);
                                                            return std::nullopt;
                                                          });
    if (result.failure) error_ = runtime::describe(*result.failure);
    return !result.failure;
  }
  /// The time of the plan at the costs of the last turn.
  double predicted() {
    const tools::Profile profile =
        tools::profile_of(job_->training, job_->job->training(), job_->executor->recorded());
    return passes::simulate_actions(
               job_->training, service::costs_of(job_->training, profile.costs, session_->sink()))
        .makespan;
  }
  std::string error() {
    session_->finish();
    return error_ + err_.str();
  }

 private:
  source::MemoryFileSystem files_;
  std::ostringstream out_, err_;
  tools::Console console_{out_, err_, files_, {}};
  tools::Arguments arguments_;
  std::optional<tools::Session> session_;
  std::optional<tools::Session::Subject> subject_;
  std::unique_ptr<tools::TrainJob> job_;
  std::string error_;
};

struct Contender {
  std::string name, schedule;
  int microbatches;
  std::unique_ptr<Run> calibration = {}, measurement = {};
  std::vector<double> predicted = {}, measured = {};
};

void BM_PredictedStep(benchmark::State& state) {
  std::list<Contender> all;
  for (const auto& [name, schedule, microbatches] : {std::tuple("gpipe_1", "gpipe", 1),
                                                     {"gpipe_2", "gpipe", 2},
                                                     {"one_f_one_b_8", "one_f_one_b", 8}})
    all.push_back({name, schedule, microbatches});
  for (Contender& each : all) {
    each.calibration = std::make_unique<Run>(each.schedule, each.microbatches, true);
    each.measurement = std::make_unique<Run>(each.schedule, each.microbatches, false);
    for (Run* run : {each.calibration.get(), each.measurement.get()}) {
      if (!run->open()) return state.SkipWithError(run->error().c_str());
    }
  }
  for (auto _ : state) {
    double wall = 0;
    for (Contender& each : all) {
      std::vector<double> unread;
      bool good = false;
      wall += measure([&] {
                good = each.calibration->steps(unread) && each.measurement->steps(each.measured);
              }).wall;
      if (!good)
        return state.SkipWithError((each.calibration->error() + each.measurement->error()).c_str());
      each.predicted.push_back(each.calibration->predicted());
    }
    state.SetIterationTime(wall);
  }
  double worst = 0;
  std::vector<std::pair<double, double>> both;
  for (const Contender& each : all) {
    both.emplace_back(tenth(each.predicted), tenth(each.measured));
    const auto& [predicted, measured] = both.back();
    state.counters[each.name + "_predicted_ms"] = 1e3 * predicted;
    state.counters[each.name + "_measured_ms"] = 1e3 * measured;
    state.counters[each.name + "_difference_percent"] = 100 * (predicted / measured - 1);
    worst = std::max(worst, std::abs(predicted / measured - 1));
  }
  bool ranked = true;
  for (const auto& a : both) {
    for (const auto& b : both) ranked = ranked && (a.first < b.first) == (a.second < b.second);
  }
  state.counters["largest_difference_percent"] = 100 * worst;
  state.counters["ranking_right"] = ranked;
}

BENCHMARK(BM_PredictedStep)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(kRounds);

}  // namespace
}  // namespace piper::bench
