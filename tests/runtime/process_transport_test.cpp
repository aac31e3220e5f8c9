// The transport between processes, which are threads here: each has its own group, its own worker
// of UCX, and one or several ranks. Results are those of the local transport, bit for bit.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <thread>

#include "runtime/transport/process_transport.h"
#include "tests/runtime/block_job.h"
#include "tests/runtime/joined_ranks.h"
#include "tests/runtime/sample_jobs.h"
#include "tests/support/run_options.h"

namespace piper::runtime {
namespace {

/// One process of a run.
struct Process {
  std::uint32_t number;
  ProcessRanks ranks;
  ProcessGroup& group;
  Executor& executor;
};

CpuOptions delayed(std::uint64_t seed) { return {.delays = {.seed = seed, .max_us = 50}}; }

/// `job`: of all ranks, made by each process; it must outlive `use`.
void with_processes(
    std::uint32_t world,
    const std::function<void(std::uint32_t process, const std::function<void(const PiperJob&)>&)>&
        make_job,
    const std::function<void(Process&)>& use, const CpuOptions& cpu = {}) {
  std::barrier ended(world);
  with_ranks(world,
             [&](std::uint32_t process, std::unique_ptr<ProcessGroup> group, const Failure& apart) {
               ASSERT_TRUE(group) << apart.message;
               make_job(process, [&](const PiperJob& job) {
                 const ProcessRanks ranks = ranks_of(process, world, job.world);
                 PiperJob local = job;
                 local.ranks += ranks.first;
                 local.num_ranks = ranks.count;
                 Failure failure;
                 CpuOptions options = cpu;
                 options.transport =
                     open_process_transport(*group, processes_of_ranks(world, job.world), failure);
                 ASSERT_TRUE(options.transport) << describe(failure);
                 ExecutorOptions checked;
                 checked.runtime = test::checked_run(20);
                 const auto executor = Executor::create(local, make_cpu_device(std::move(options)),
                                                        checked, failure, {group.get(), &job});
                 ASSERT_TRUE(executor) << describe(failure);
                 Process running{process, ranks, *group, *executor};
                 use(running);
                 // The process is gone; its memory stays while another may look at it.
                 group.reset();
                 ended.arrive_and_wait();
               });
             });
}

void expect_finished(const RunResult& result) {
  EXPECT_EQ(result.ended, Ended::finished) << describe(result.failure.value_or(Failure()));
}

TEST(ProcessTransport, MovesShardsOfEverySize) {
  for (const auto& [world, members] : {std::pair{2u, 2u}, {2u, 5u}, {3u, 4u}}) {
    SCOPED_TRACE(std::to_string(members) + " members in " + std::to_string(world) + " processes");
    with_processes(
        world,
        [&](std::uint32_t process, const auto& use) {
          BlockJob job(members);
          use(job.tables());
          (void)process;
        },
        [&](Process& process) {
          expect_finished(process.executor.run(Phase::training, 1));
          BlockJob job(members);
          EXPECT_EQ(job.difference(process.executor, true, process.number == 0), "");
          process.group.leave();
        },
        delayed(members));
  }
}

float contribution(std::uint32_t rank, std::uint64_t i) {
  return std::sin(static_cast<float>(i + 1)) * std::pow(10.0f, static_cast<float>(rank * 2));
}

/// Four members in another order than their ranks, in place and not, one of them without a term for
/// the second part.
TEST(ProcessTransport, AllReduceAddsInMemberOrder) {
  constexpr std::uint64_t kElements = 150'001, kFew = 3;  // several slices, and fewer than members
  const std::vector<std::uint32_t> members = {2, 0, 3, 1};
  const auto expected = [&](std::uint64_t i, bool all) {
    const float three = (contribution(2, i) + contribution(0, i)) + contribution(3, i);
    return all ? three + contribution(1, i) : three;
  };
  for (const std::uint32_t world : {2u, 3u, 4u}) {
    std::vector<int> right(4, 0);
    with_processes(
        world,
        [&](std::uint32_t, const auto& use) {
          HandJob job(4);
          const std::uint32_t group = job.group(members);
          for (std::uint32_t r = 0; r < 4; ++r) {
            HandProgram& program = job.rank(r);
            const std::uint64_t x = program.allocate<float>(kElements);
            const std::uint64_t sum = r < 2 ? x : program.allocate<float>(kElements);
            const std::uint64_t few = program.allocate<float>(kFew);
            const Spot make = program.compute("make", {}, [=](Step& step) {
              for (std::uint64_t i = 0; i < kElements; ++i)
                step.at<float>(x)[i] = contribution(r, i);
              for (std::uint64_t i = 0; i < kFew; ++i) step.at<float>(few)[i] = contribution(r, i);
              return 0;
            });
            const Spot reduce = program.communicate(
                "grads", PIPER_ALL_REDUCE, group, 9,
                {HandProgram::part<float>(x, sum, kElements),
                 HandProgram::part<float>(r == 1 ? PIPER_NO_OFFSET : few, few, kFew)},
                {HandProgram::after(make)});
            program.compute("check", {HandProgram::after(reduce)}, [=, &right](Step& step) {
              for (std::uint64_t i = 0; i < kElements; ++i) {
                if (step.at<float>(sum)[i] != expected(i, true)) return 0;
              }
              for (std::uint64_t i = 0; i < kFew; ++i) {
                if (step.at<float>(few)[i] != expected(i, false)) return 0;
              }
              ++right[r];
              return 0;
            });
          }
          use(job.finish());
        },
        [&](Process& process) {
          expect_finished(process.executor.run(Phase::training, 3));
          process.group.leave();
        });
    EXPECT_EQ(right, std::vector<int>(4, 3)) << world << " processes";
  }
}

/// Two sets of two replicas: the first of a set is the one whose values all get.
TEST(ProcessTransport, GathersListsOfValues) {
  std::vector<std::vector<double>> seen(4);
  with_processes(
      3,
      [&](std::uint32_t, const auto& use) {
        HandJob job(4);
        const std::uint32_t group = job.group({0, 1, 2, 3}, 2);
        for (std::uint32_t r = 0; r < 4; ++r) {
          HandProgram& program = job.rank(r);
          const std::uint64_t mine = program.allocate<double>(2), all = program.allocate<double>(3);
          const bool head = r < 2;
          const Spot make = program.compute("make", {}, [=](Step& step) {
            step.at<double>(mine)[0] = head ? 1 : 3;
            step.at<double>(mine)[1] = 2;
            return 0;
          });
          std::vector<PiperMessagePart> parts;
          for (std::uint32_t i = 0; i < 3; ++i) {
            const bool adds = head == (i < 2);
            parts.push_back(HandProgram::part<double>(
                adds ? mine + 8 * (head ? i : 0) : PIPER_NO_OFFSET, all + 8 * i, 1));
          }
          const Spot gather = program.communicate("norm", PIPER_ALL_GATHER_V, group, 1, parts,
                                                  {HandProgram::after(make)});
          program.compute("check", {HandProgram::after(gather)}, [=, &seen](Step& step) {
            seen[r].assign(step.at<double>(all), step.at<double>(all) + 3);
            return 0;
          });
        }
        use(job.finish());
      },
      [&](Process& process) {
        expect_finished(process.executor.run(Phase::training, 2));
        process.group.leave();
      });
  for (const auto& values : seen) EXPECT_EQ(values, (std::vector<double>{1, 2, 3}));
}

void make_pipeline(std::uint32_t, const std::function<void(const PiperJob&)>& use) {
  HandJob job(2);
  add_pipeline(job);
  use(job.finish());
}

/// Runs one after the other, whose first messages may arrive before the other side has begun.
TEST(ProcessTransport, RunsFollowEachOther) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    with_processes(
        2, make_pipeline,
        [](Process& process) {
          double w = 0.5;
          std::vector<double> losses;
          for (const std::uint64_t steps : {1, 7, 1, 20}) {
            expect_finished(
                process.executor.run(Phase::training, steps, [&](const StepRecord& step) {
                  losses.push_back(step.loss);
                  return std::nullopt;
                }));
          }
          EXPECT_EQ(losses, expected_losses(29, w));
          const auto weight = process.executor.read_parameter("w", ParamTensor::values);
          if (process.number == 0) {
            EXPECT_EQ(weight->values, std::vector<double>{w});
          }
          process.group.leave();
        },
        seed == 0 ? CpuOptions() : delayed(seed));
  }
}

TEST(ProcessTransport, AStopEndsAllAtOneStep) {
  std::uint64_t steps[2] = {};
  with_processes(2, make_pipeline, [&](Process& process) {
    const RunResult result =
        process.executor.run(Phase::training, 1'000'000, [&](const StepRecord& step) {
          if (process.number == 1 && step.local_step == 20) process.executor.request_stop();
          return std::nullopt;
        });
    EXPECT_EQ(result.ended, Ended::stopped) << describe(result.failure.value_or(Failure()));
    steps[process.number] = result.steps;
    process.group.leave();
  });
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_GT(steps[1], 20u);
}

/// The waiting process names the lost one and the action in which it waits.
TEST(ProcessTransport, NoProcessWaitsForADeadPeer) {
  with_processes(2, make_pipeline, [](Process& process) {
    const RunResult result =
        process.executor.run(Phase::training, process.number == 1 ? 4 : 1'000'000);
    if (process.number == 1) return;
    ASSERT_EQ(result.ended, Ended::failed);
    EXPECT_EQ(result.failure->code, kProcessLost);
    EXPECT_FALSE(result.failure->place.action.empty());
  });
}

/// A message of 100 doubles, or one that does not fit it.
struct Message {
  std::uint32_t elements = 100, identity = 3;
  std::uint32_t parts = 1;
  bool floats = false;
};

std::vector<PiperMessagePart> parts_of(const Message& message, std::uint64_t in,
                                       std::uint64_t out) {
  const PiperMessagePart part = message.floats
                                    ? HandProgram::part<float>(in, out, message.elements)
                                    : HandProgram::part<double>(in, out, message.elements);
  return std::vector<PiperMessagePart>(message.parts, part);
}

/// Both ends of a message that disagree learn of it; the job of one process has `changed`.
void expect_mismatch(const char* text, const Message& changed) {
  with_processes(
      2,
      [&](std::uint32_t process, const auto& use) {
        HandJob job(2);
        const std::uint32_t pair = job.pair(0, 1);
        HandProgram& from = job.rank(0);
        HandProgram& to = job.rank(1);
        const std::uint64_t x = from.allocate<double>(100), y = to.allocate<double>(100);
        const Spot make = from.compute("make", {}, [](Step&) { return 0; });
        const Message message = process == 1 ? changed : Message();
        from.communicate("p2p", PIPER_SEND, pair, message.identity, parts_of(message, x, 0),
                         {HandProgram::after(make)});
        const Spot got =
            to.communicate("p2p", PIPER_RECV, pair, message.identity, parts_of(message, 0, y), {});
        to.compute("use", {HandProgram::after(got)}, [](Step&) { return 0; });
        use(job.finish());
      },
      [&](Process& process) {
        const RunResult result = process.executor.run(Phase::training, 1);
        ASSERT_EQ(result.ended, Ended::failed);
        EXPECT_EQ(result.failure->code, kMessageMismatch);
        EXPECT_EQ(result.failure->message, text);
      });
}

TEST(ProcessTransport, EndsThatDisagreeFail) {
  expect_mismatch("the members have values of different sizes", {.elements = 99});
  expect_mismatch("the members run different communications", {.identity = 4});
  expect_mismatch("the members have different numbers of values", {.parts = 2});
  expect_mismatch("the members have values of different types", {.floats = true});
}

/// A rank that waits for another process sleeps.
TEST(ProcessTransport, AWaitTakesNoProcessorTime) {
  constexpr auto kPause = std::chrono::milliseconds(400);
  with_processes(
      2,
      [&](std::uint32_t, const auto& use) {
        HandJob job(2);
        const std::uint32_t pair = job.pair(0, 1);
        HandProgram& from = job.rank(0);
        HandProgram& to = job.rank(1);
        const std::uint64_t x = from.allocate<double>(1), y = to.allocate<double>(1);
        const Spot make = from.compute("pause", {}, [=](Step&) {
          std::this_thread::sleep_for(kPause);
          return 0;
        });
        from.communicate("p2p", PIPER_SEND, pair, 3, {HandProgram::part<double>(x, 0, 1)},
                         {HandProgram::after(make)});
        const Spot got =
            to.communicate("p2p", PIPER_RECV, pair, 3, {HandProgram::part<double>(0, y, 1)}, {});
        to.compute("use", {HandProgram::after(got)}, [](Step&) { return 0; });
        use(job.finish());
      },
      [&](Process& process) {
        const auto processor_seconds = [] {
          rusage usage{};
          getrusage(RUSAGE_SELF, &usage);
          return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
        };
        const double before = processor_seconds();
        expect_finished(process.executor.run(Phase::training, 2));
        // Both processes are in this one; a core that spins would take all of two pauses.
        EXPECT_LT(processor_seconds() - before, 0.4);
        process.group.leave();
      });
}

TEST(ProcessTransport, ProcessesShareTheRanks) {
  EXPECT_EQ(processes_of_ranks(3, 8), (std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(ranks_of(2, 3, 8).first, 6u);
  EXPECT_EQ(ranks_of(2, 3, 8).count, 2u);
  const Launch one{.world = 4, .ranks = 4}, several{.world = 3, .ranks = 8};
  EXPECT_EQ(process_text(one, 2), "rank 2");
  EXPECT_EQ(process_text(several, 1), "process 1 (ranks 3 to 5)");
}

}  // namespace
}  // namespace piper::runtime
