#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "runtime/launch/interrupt.h"
#include "runtime/launch/train.h"
#include "runtime/trace/flight.h"
#include "runtime/trace/positions.h"
#include "runtime/trace/stuck.h"
#include "tests/runtime/sample_jobs.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Launch, TrainsThenEvaluates) {
  const test::TemporaryFolder folder;
  HandJob job(2);
  add_pipeline(job);
  add_evaluation(job);
  auto executor = create(job.finish());
  ASSERT_TRUE(executor);
  std::string shown;
  const TrainResult result = train(
      *executor, job.tables(),
      {.out_folder = folder.path(), .write = [&](const std::string& text) { shown += text; }});
  EXPECT_EQ(result.ended, Ended::finished);
  EXPECT_EQ(result.steps, 10u);
  double w = 0.5;
  const std::vector<double> expected = expected_losses(10, w);
  EXPECT_EQ(result.first_loss, expected.front());
  EXPECT_EQ(result.last_loss, expected.back());
  EXPECT_TRUE(result.trained);
  EXPECT_EQ(result.held_out_loss, 1.0);
  EXPECT_GT(result.throughput.per_second, 0);
  EXPECT_EQ(lines_of(folder.path() / "metrics.jsonl").size(), 11u);
  EXPECT_NE(shown.find("step 10/10"), std::string::npos);
  EXPECT_NE(shown.find("held out 1/1"), std::string::npos);
  // Going on appends.
  EXPECT_EQ(train(*executor, job.tables(), {.steps = 2, .out_folder = folder.path()}).steps, 2u);
  EXPECT_EQ(lines_of(folder.path() / "metrics.jsonl").size(), 14u);
}

TEST(Launch, AFullDiskEndsTheRun) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  const TrainResult result = train(*executor, job.tables(), {.out_folder = "/proc/nowhere"});
  EXPECT_EQ(result.ended, Ended::failed);
  EXPECT_EQ(result.failure->code, kOutputUnwritable);
  EXPECT_EQ(result.steps, 0u);
}

TEST(Launch, AnInterruptEndsAtAStepBoundary) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  {
    const Interrupt interrupt;
    const EndsRun ends(interrupt, *executor);
    const RunResult result = executor->run(Phase::training, 1'000'000, [&](const StepRecord& step) {
      if (step.local_step == 5) raise(SIGINT);
      return std::nullopt;
    });
    EXPECT_EQ(result.ended, Ended::stopped);
    EXPECT_GT(result.steps, 5u);
  }
  // Its handler is gone.
  struct sigaction now{};
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST(Launch, AnIgnoredInterruptStaysIgnored) {
  HandJob job(2);
  add_pipeline(job);
  auto executor = create(job.finish());
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    const Interrupt interrupt;
    const EndsRun ends(interrupt, *executor);
    const RunResult result = executor->run(Phase::training, 20, [&](const StepRecord& step) {
      if (step.local_step == 5) raise(SIGINT);
      return std::nullopt;
    });
    EXPECT_EQ(result.ended, Ended::finished);
    EXPECT_EQ(result.steps, 20u);
  }
  EXPECT_EQ(std::signal(SIGINT, before), SIG_IGN);
}

TEST(Launch, TheRecordsOfADeadRunSayWhatHungThere) {
  const test::TemporaryFolder folder;
  HandJob job(2);
  const std::uint32_t pair = job.pair(0, 1);
  HandProgram& a = job.rank(0);
  HandProgram& b = job.rank(1);
  const std::uint64_t x = a.allocate<double>(1), y = b.allocate<double>(1);
  a.communicate("p2p", PIPER_SEND, pair, 1, {HandProgram::part<double>(x, 0, 1)},
                {HandProgram::after(a.compute("F.a", {}, [](Step& step) {
                  // Rank 0 spends its third step in here until the run is given up.
                  int cancelled = 0;
                  while (step.rank->step == 2 && !cancelled)
                    cancelled = step.api->load(step.rank, step.action, 0, 0, 0, nullptr);
                  return cancelled;
                }))});
  const Spot got =
      b.communicate("p2p", PIPER_RECV, pair, 1, {HandProgram::part<double>(0, y, 1)}, {});
  b.compute("F.b", {HandProgram::after(got)}, [](Step&) { return 0; });
  ExecutorOptions options;
  options.runtime.stall_seconds = 0.2;
  options.out_folder = folder.path();
  auto executor = create(job.finish(), options);
  const RunResult result = executor->run(Phase::training, 5);
  ASSERT_EQ(result.ended, Ended::failed);
  EXPECT_EQ(result.failure->code, kStalled);
  EXPECT_EQ(result.failure->rank, 0u);
  EXPECT_EQ(result.failure->place.action, "F.a");
  EXPECT_EQ(result.failure->step, 2u);
  std::vector<StuckRank> ranks;
  for (std::uint32_t r = 0; r < 2; ++r) {
    const auto record = read_flight(flight_path(folder.path(), r));
    ASSERT_TRUE(record);
    ranks.push_back(
        {job.tables().ranks[r].program, job.tables().ranks[r].communicators, r, *record});
  }
  const Failure told = explain_stall(ranks);
  ASSERT_EQ(told.notes.size(), 4u) << describe(told);
  EXPECT_EQ(told.notes[0].text, "rank 1: `F.b` waits for the end of `p2p.1`");
  EXPECT_EQ(told.notes[1].text, "rank 1: `p2p.1` waits for rank `0` to start its `send`");
  EXPECT_EQ(told.notes[2].text, "rank 0: `p2p.1` waits for the end of `F.a`");
  EXPECT_EQ(told.notes[3].text, "rank 0: `F.a` is running");
  // A process that was stopped after the end of its wait.
  PiperFlight& stopped = ranks[1].flight;
  EXPECT_TRUE(position_of(job.tables().ranks[1], stopped));
  stopped.ended[stopped.waiting_stream] = stopped.waiting_target;
  const Failure held_up = explain_stall(ranks);
  EXPECT_EQ(held_up.rank, 1u);
  ASSERT_EQ(held_up.notes.size(), 1u) << describe(held_up);
  EXPECT_EQ(held_up.notes[0].text, "rank 1: `F.b` did not go on after the end of `p2p.1`");
  stopped.waiting_stream = 1000;
  EXPECT_FALSE(position_of(job.tables().ranks[1], stopped)) << "a damaged record";
}

}  // namespace
}  // namespace piper::runtime
