#include "runtime/cpu/device_limit.h"
#include "runtime/device/idle_time.h"
#include "runtime/executor/executor.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "tests/runtime/sample_jobs.h"

namespace piper::runtime {
namespace {

TEST(Executor, RunsAPipelineOverManySteps) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  double w = 0.5;
  const std::vector<double> expected = expected_losses(300, w);
  std::vector<double> losses;
  const RunResult result = executor->run(Phase::training, 300, [&](const StepRecord& step) {
    EXPECT_EQ(step.step, losses.size());
    EXPECT_EQ(step.microbatch_sums[0].size(), kMicrobatches);
    losses.push_back(step.loss);
    return std::nullopt;
  });
  EXPECT_EQ(result.ended, Ended::finished) << (result.failure ? describe(*result.failure) : "");
  EXPECT_EQ(result.steps, 300u);
  EXPECT_EQ(losses, expected);
  EXPECT_EQ(executor->read_parameter("w", ParamTensor::values)->values, std::vector<double>{w});
}

// More devices than the system can hold are reported before minutes have passed, and a long start
// can be stopped.
TEST(Executor, TooManyDevicesAreRefusedBeforeTheyStart) {
  EXPECT_FALSE(too_many_devices(4, 4));
  const auto failure = too_many_devices(std::uint64_t{1} << 32, 0);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, kOutOfMemory);
  EXPECT_NE(failure->message.find("`4294967296` devices are as many threads of this process"),
            std::string::npos)
      << failure->message;
}

TEST(Executor, AStartCanBeStopped) {
  HandJob job(2);
  add_pipeline(job);
  int asked = 0;
  ExecutorOptions options;
  options.stopped = [&] { return ++asked > 1; };
  Failure failure;
  EXPECT_FALSE(Executor::create(job.finish(), make_cpu_device(), options, failure));
  EXPECT_EQ(failure.message, "");
  EXPECT_EQ(asked, 2) << "it went on";
}

// After an earlier stop no device begins, and none is waited for.
TEST(Executor, AStopEndsTheStartOfDevices) {
  HandJob job(64);
  for (std::uint32_t rank = 0; rank < 64; ++rank) {
    job.rank(rank).compute("F", {}, [](Step&) { return 0; });
  }
  auto executor = create(job.finish());
  executor->request_stop();
  const RunResult result = executor->run(Phase::training, 5);
  EXPECT_EQ(result.ended, Ended::stopped);
  EXPECT_EQ(result.steps, 0u);
}

// Otherwise the first step waits for pages, and its reported speed is wrong.
TEST(Executor, AllMemoryIsThereBeforeTheFirstStep) {
  for (const bool huge_pages : {false, true}) {
    HandJob job(1);
    HandProgram& program = job.rank(0);
    program.allocate<double>(1 << 20);
    std::vector<unsigned char> resident;
    program.compute("F", {}, [&resident](Step& step) {
      const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
                        bytes = step.rank->program->arena_bytes;
      resident.assign((bytes + page - 1) / page, 0);
      return mincore(step.rank->arena, bytes, resident.data());
    });
    ExecutorOptions options;
    options.runtime.huge_pages = huge_pages;
    const RunResult result = create(job.finish(), options)->run(Phase::training, 1);
    ASSERT_EQ(result.ended, Ended::finished) << (result.failure ? describe(*result.failure) : "");
    ASSERT_GE(resident.size(), 2048u);
    EXPECT_EQ(std::count_if(resident.begin(), resident.end(),
                            [](unsigned char flags) { return (flags & 1) == 0; }),
              0)
        << huge_pages;
  }
}

TEST(Executor, GivesTheSameUnderEveryTiming) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    HandJob job(2);
    add_pipeline(job);
    ExecutorOptions options;
    options.runtime.spin = seed % 2 ? 0 : 100;
    auto executor = create(job.finish(), options, {.delays = {.seed = seed, .max_us = 150}});
    double w = 0.5;
    const std::vector<double> expected = expected_losses(4, w);
    std::vector<double> losses;
    const RunResult result = executor->run(Phase::training, 4, [&](const StepRecord& step) {
      losses.push_back(step.loss);
      return std::nullopt;
    });
    ASSERT_EQ(result.ended, Ended::finished) << (result.failure ? describe(*result.failure) : "");
    ASSERT_EQ(losses, expected) << "seed " << seed;
  }
}

TEST(Executor, ContinuesWhereTheRunBeforeEnded) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  double w = 0.5;
  std::vector<double> expected = expected_losses(9, w), losses;
  const OnStep keep = [&](const StepRecord& step) {
    losses.push_back(step.loss);
    return std::nullopt;
  };
  for (const std::uint64_t steps : {1, 3, 5})
    EXPECT_EQ(executor->run(Phase::training, steps, keep).ended, Ended::finished);
  EXPECT_EQ(losses, expected);
  EXPECT_EQ(executor->next_step(), 9u);
}

TEST(Executor, EvaluatesWithTheStateOfTraining) {
  HandJob job(2);
  add_pipeline(job);
  HandProgram& first = job.evaluation(0);
  const std::uint64_t weight = first.allocate<double>(1);
  first.allocate<double>(1);
  first.end_state();
  const std::uint64_t out = first.allocate<double>(1);
  const Spot copy = first.compute("F.a", {}, [=](Step& step) {
    *step.at<double>(out) = *step.at<double>(weight) + static_cast<double>(step.rank->global_step);
    return 0;
  });
  const std::uint32_t down = job.pair(0, 1);
  const Spot sent = first.communicate("down", PIPER_SEND, down, 1,
                                      {HandProgram::part<double>(out, PIPER_NO_OFFSET, 1)},
                                      {HandProgram::after(copy)});
  first.add_wait(copy, HandProgram::after(sent, 1));
  HandProgram& second = job.evaluation(1);
  const std::uint64_t in = second.allocate<double>(1);
  const Spot got = second.communicate("down", PIPER_RECV, down, 1,
                                      {HandProgram::part<double>(PIPER_NO_OFFSET, in, 1)}, {});
  const Spot told = second.compute("report", {HandProgram::after(got)}, [=](Step& step) {
    step.api->report(step.rank, 0, step.at<double>(in), 1);
    return 0;
  });
  second.add_wait(got, HandProgram::after(told, 1));
  auto executor = create(job.finish());
  double w = 0.5;
  expected_losses(3, w);
  ASSERT_EQ(executor->run(Phase::training, 3).ended, Ended::finished);
  std::vector<double> sums;
  const RunResult result = executor->run(Phase::evaluation, 40, [&](const StepRecord& step) {
    sums.push_back(step.microbatch_sums[0][0]);
    return std::nullopt;
  });
  ASSERT_EQ(result.ended, Ended::finished);
  ASSERT_EQ(sums.size(), 40u);
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], w + static_cast<double>(i));
  expected_losses(2, w, 3);
  EXPECT_EQ(executor->run(Phase::training, 2).ended, Ended::finished);
  EXPECT_EQ(executor->read_parameter("w", ParamTensor::values)->values[0], w);
}

TEST(Executor, StopsAllRanksAtOneStep) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  std::uint64_t seen = 0;
  const RunResult result = executor->run(Phase::training, 1'000'000, [&](const StepRecord& step) {
    if (step.local_step == 20) executor->request_stop();
    ++seen;
    return std::nullopt;
  });
  EXPECT_EQ(result.ended, Ended::stopped);
  EXPECT_GT(result.steps, 20u);
  EXPECT_LT(result.steps, 100u);
  EXPECT_EQ(seen, result.steps);
  EXPECT_EQ(executor->next_step(), result.steps);
  // The state is that after exactly this number of steps.
  double w = 0.5;
  expected_losses(result.steps, w);
  EXPECT_EQ(executor->read_parameter("w", ParamTensor::values)->values[0], w);
  // A stop holds for later runs, too, from their first step on.
  const RunResult later = executor->run(Phase::training, 5);
  EXPECT_EQ(later.ended, Ended::stopped);
  EXPECT_EQ(later.steps, 0u);
}

TEST(Executor, RanksWithoutConnectionStayWithinTheReports) {
  HandJob job(2);
  std::atomic<std::uint64_t> fast{0};
  std::uint64_t slow = 0, largest = 0;
  job.rank(0).compute("fast", {}, [&](Step& step) {
    fast = step.rank->step;
    return 0;
  });
  job.rank(1).compute("slow", {}, [&](Step&) {
    if (++slow % 10 == 0) usleep(1000);
    largest = std::max(largest, fast.load() - std::min(fast.load(), slow));
    return 0;
  });
  auto executor = create(job.finish());
  EXPECT_EQ(executor->run(Phase::training, 100).ended, Ended::finished);
  EXPECT_EQ(slow, 100u);
  EXPECT_LE(largest, 8u);
}

TEST(Executor, CountsTheBytesThatAreWritten) {
  HandJob job(1);
  HandProgram& only = job.rank(0);
  const std::uint64_t a = only.allocate<double>(100);
  const std::uint64_t never = only.allocate<double>(1000);
  only.compute("F", {}, [=](Step& step) {
    std::fill_n(step.at<double>(a), 100, 1.0);
    return std::isnan(step.at<double>(never)[7]) ? 0 : 1;  // unwritten memory is NaN
  });
  ExecutorOptions options;
  options.runtime.check_memory = true;
  auto executor = create(job.finish(), options);
  EXPECT_EQ(executor->run(Phase::training, 2).ended, Ended::finished);
  EXPECT_EQ(executor->touched_bytes(), std::vector<std::uint64_t>{a + 800});
  EXPECT_EQ(executor->arena_bytes(), std::vector<std::uint64_t>{never + 8000});
}

TEST(ExecutorDeathTest, AGuardStandsAfterTheArena) {
  HandJob job(1);
  HandProgram& only = job.rank(0);
  const std::uint64_t last = only.allocate<double>(8);
  only.compute("F", {}, [=](Step& step) {
    step.at<volatile double>(last)[8] = 1;
    return 0;
  });
  ExecutorOptions options;
  options.runtime.check_memory = true;
  const PiperJob& tables = job.finish();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(create(tables, options)->run(Phase::training, 1), "");
}

// Stopped for ten minutes and continued, a process has not waited for ten minutes.
TEST(IdleTime, CountsWhatWasWaitedFor) {
  using std::chrono::milliseconds, std::chrono::minutes;
  IdleTime::Clock::time_point now{};
  IdleTime idle(now);
  EXPECT_EQ(idle.look(false, now += milliseconds(20)), milliseconds(20));
  EXPECT_EQ(idle.look(false, now += milliseconds(30)), milliseconds(50));
  EXPECT_EQ(idle.look(false, now += minutes(10)), milliseconds(50) + IdleTime::kLongestLook);
  EXPECT_EQ(idle.look(true, now += milliseconds(20)), milliseconds(0));
  EXPECT_EQ(idle.look(false, now += milliseconds(20)), milliseconds(20));
}

}  // namespace
}  // namespace piper::runtime
