// The CUDA executor's requests to a device, checked for data races: every program that run_test.cpp
// runs, step by step, captured and timed, on one GPU and as processes over NCCL; and every left-out
// wait is noticed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "runtime/cuda/cuda_device.h"
#include "runtime/processes/process_group.h"
#include "runtime/processes/sockets.h"
#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/data_races.h"
#include "tests/cuda/recording_nccl.h"
#include "tests/laws/library_cases.h"

namespace piper::test {
namespace {

enum class Steps : std::uint8_t { plain, captured, timed };
constexpr Steps kAllSteps[] = {Steps::plain, Steps::captured, Steps::timed};

const char* name_of(Steps steps) {
  return steps == Steps::plain ? "plain" : steps == Steps::captured ? "captured" : "timed";
}

/// The job of a program, and the kernels that it launches.
class Planned {
 public:
  Planned(std::string what, const std::string& text, tensor::DType dtype)
      : what_(std::move(what) + " in " + std::string(tensor::dtype_name(dtype))),
        law_(text, dtype) {
    LawRunOptions options;
    options.held_out_steps = 1;
    if (law_.program && *law_.program) job_ = law_.program->make_job(options);
    EXPECT_TRUE(job_) << what_;
    if (job_) operands_ = operands_of(*job_);
  }
  const std::string& what() const { return what_; }

  /// Each phase for enough steps that graphs of both parities are launched twice.
  Trace trace(Steps steps, const std::vector<runtime::Phase>& phases) const {
    Trace made;
    const runtime::ExecutorOptions settings = settings_of(steps);
    runtime::Failure failure;
    const auto executor = executors_on({""}, [&] {
      return std::make_unique<RecordingDriver>(operands_, made);
    })(*job_, settings, failure);
    EXPECT_TRUE(executor) << describe(failure);
    if (!executor) return made;
    run_phases(*executor, steps, phases);
    expect_graphs(made, steps, phases);
    return made;
  }

  /// Each rank as a separate process, here a thread: data moves are recorded, and move nothing.
  std::vector<Trace> traces_of_processes(Steps steps,
                                         const std::vector<runtime::Phase>& phases) const {
    std::vector<Trace> made(job_->tables().world);
    const std::uint16_t port = [] {
      runtime::Listeners listeners;
      std::string reason;
      EXPECT_TRUE(listeners.open("127.0.0.1", 0, reason)) << reason;
      return listeners.port();
    }();
    std::vector<std::jthread> ranks;
    for (std::uint32_t rank = 0; rank < made.size(); ++rank) {
      ranks.emplace_back([&, rank] { run_process(rank, port, steps, phases, made[rank]); });
    }
    ranks.clear();
    for (const Trace& trace : made) expect_graphs(trace, steps, phases);
    return made;
  }

 private:
  static constexpr std::uint64_t kSteps = 6;

  static runtime::ExecutorOptions settings_of(Steps steps) {
    runtime::ExecutorOptions settings = with_graphs(steps == Steps::captured);
    settings.record = steps == Steps::timed;
    return settings;
  }
  static void run_phases(runtime::Executor& executor, Steps steps,
                         const std::vector<runtime::Phase>& phases) {
    for (const runtime::Phase phase : phases) {
      const auto result = executor.run(phase, steps == Steps::captured ? kSteps : 3);
      EXPECT_EQ(result.ended, runtime::Ended::finished)
          << (result.failure ? describe(*result.failure) : "");
    }
  }
  static void expect_graphs(const Trace& trace, Steps steps,
                            const std::vector<runtime::Phase>& phases) {
    const std::size_t graphs = 2 * std::set<runtime::Phase>(phases.begin(), phases.end()).size();
    EXPECT_EQ(trace.graphs.size(), steps == Steps::captured ? graphs : 0u);
  }
  void run_process(std::uint32_t rank, std::uint16_t port, Steps steps,
                   const std::vector<runtime::Phase>& phases, Trace& to) const {
    runtime::Failure failure;
    const auto group = runtime::ProcessGroup::join({.rank = rank,
                                                    .world = job_->tables().world,
                                                    .local_rank = rank,
                                                    .host = "127.0.0.1",
                                                    .port = port},
                                                   {.seconds = 30}, failure);
    ASSERT_TRUE(group) << describe(failure);
    PiperJob own = job_->tables();
    own.ranks += rank;
    own.num_ranks = 1;
    auto driver = std::make_unique<RecordingDriver>(operands_, to);
    auto nccl = std::make_unique<RecordingNccl>(*driver);
    {
      auto device = runtime::cuda::make_cuda_device(
          {{""}, {job_->enqueue(rank, false)}, {job_->enqueue(rank, true)}}, std::move(driver),
          std::move(nccl));
      const auto executor = runtime::Executor::create(own, std::move(device), settings_of(steps),
                                                      failure, {group.get(), &job_->tables()});
      ASSERT_TRUE(executor) << describe(failure);
      run_phases(*executor, steps, phases);
    }
    group->leave();
  }
  const std::string what_;
  CudaLaw law_;
  std::unique_ptr<backend::Job> job_;
  KernelOperands operands_;
};

std::vector<std::unique_ptr<Planned>> line_programs(tensor::DType dtype) {
  std::vector<std::unique_ptr<Planned>> made;
  for (const auto& [name, lines] : kNoisyLines)
    made.push_back(std::make_unique<Planned>(name, noisy_source(lines), dtype));
  return made;
}

std::vector<std::unique_ptr<Planned>> library_programs(tensor::DType dtype) {
  std::vector<std::unique_ptr<Planned>> made;
  for (const LibraryCase& each : library_cases()) {
    for (const char* zero : {"zero: 1", "zero: 2", "zero: 3, prefetch: 1"}) {
      if (each.replicates && zero != std::string("zero: 1")) continue;
      made.push_back(
          std::make_unique<Planned>(each.call + ", " + zero, gpt_source(each, zero), dtype));
    }
  }
  return made;
}

void expect_none(const Planned& planned) {
  for (const Steps steps : kAllSteps) {
    const std::vector<std::string> data_races = find_data_races(planned.trace(
        steps, {runtime::Phase::training, runtime::Phase::evaluation, runtime::Phase::training}));
    EXPECT_TRUE(data_races.empty())
        << planned.what() << ", " << name_of(steps) << ": " << data_races.size()
        << " hazards, the first: " << data_races.front();
  }
}

void expect_none_of_processes(const Planned& planned) {
  for (const Steps steps : kAllSteps) {
    const std::vector<Trace> traces = planned.traces_of_processes(
        steps, {runtime::Phase::training, runtime::Phase::evaluation, runtime::Phase::training});
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      const std::vector<std::string> data_races = find_data_races(traces[rank]);
      EXPECT_TRUE(data_races.empty())
          << planned.what() << ", rank " << rank << ", " << name_of(steps) << ": "
          << data_races.size() << " hazards, the first: " << data_races.front();
    }
  }
}

class DataRaces : public testing::TestWithParam<tensor::DType> {};

TEST_P(DataRaces, NoneOnOneRankOrInAttention) {
  expect_none(Planned("mlp", kMlp, GetParam()));
  expect_none(Planned("attention", kAttention, tensor::DType::f32));
}

TEST_P(DataRaces, NoneInAnyWayToCut) {
  for (const auto& each : line_programs(GetParam())) expect_none(*each);
}

TEST_P(DataRaces, NoneInAnyScheduleOfTheLibrary) {
  for (const auto& each : library_programs(GetParam())) expect_none(*each);
}

TEST_P(DataRaces, NoneInProcessesOverNccl) {
  for (const auto& each : line_programs(GetParam())) expect_none_of_processes(*each);
  const std::vector<LibraryCase> cases = library_cases();
  for (std::size_t i = 0; i < cases.size(); i += 4)
    expect_none_of_processes(
        Planned(cases[i].call, gpt_source(cases[i], "zero: 3, prefetch: 1"), GetParam()));
}

/// Over NCCL, too, a wait that is left out shows: the first rank's, each fifth.
TEST_P(DataRaces, AnyWaitThatIsLeftOutOverNcclShows) {
  for (const auto& each : line_programs(GetParam())) {
    for (const Steps steps : {Steps::plain, Steps::captured}) {
      const WaitsLeftOut left_out =
          leave_out_waits(each->traces_of_processes(steps, {runtime::Phase::training}).front(), 5);
      EXPECT_LE(left_out.missed.size() * 20, left_out.waits)
          << each->what() << ", " << name_of(steps) << ": nothing notices that "
          << left_out.missed.front() << " is left out";
      EXPECT_GT(left_out.caught, left_out.waits / 2) << each->what() << ", " << name_of(steps);
    }
  }
}

/// For some layouts every wait is left out, for the others every seventh. A wait whose absence is
/// not noticed follows from the other waits, as the order of all operations shows, with very few
/// exceptions.
TEST_P(DataRaces, AnyWaitThatIsLeftOutShows) {
  for (const auto& each : line_programs(GetParam())) {
    const bool all = GetParam() == tensor::DType::f64 &&
                     (each->what().starts_with("zero 3") || each->what().starts_with("recompute") ||
                      each->what().starts_with("offload"));
    for (const Steps steps : {Steps::plain, Steps::captured}) {
      const WaitsLeftOut left_out =
          leave_out_waits(each->trace(steps, {runtime::Phase::training}), all ? 1 : 7);
      // A plan keeps more apart than is touched, as the slack of a workspace that is aligned: a few
      // waits order operations that have no bytes in common.
      EXPECT_LE(left_out.missed.size() * 20, left_out.waits)
          << each->what() << ", " << name_of(steps) << ": nothing notices that "
          << left_out.missed.front() << " is left out";
      EXPECT_EQ(left_out.caught + left_out.implied + left_out.missed.size(), left_out.waits);
      EXPECT_GT(left_out.caught, left_out.waits * 2 / 3) << each->what() << ", " << name_of(steps);
      RecordProperty(each->what() + ", " + name_of(steps),
                     std::to_string(left_out.waits) + " waits, " + std::to_string(left_out.caught) +
                         " caught");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DataRaces, testing::Values(tensor::DType::f64, tensor::DType::bf16),
                         [](const auto& type) {
                           return std::string(tensor::dtype_name(type.param));
                         });

}  // namespace
}  // namespace piper::test
