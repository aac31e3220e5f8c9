// One run of several processes on CPUs, whose transport reaches ranks that an executor does not
// know: they stop together, learn of each other's failures, and rank 0 has the reports of all.
#include <gtest/gtest.h>

#include <barrier>
#include <map>
#include <mutex>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/transport/local.h"
#include "tests/runtime/joined_ranks.h"
#include "tests/runtime/sample_jobs.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

/// Carries messages between the executors of two processes, which are threads here: each has its
/// own transport, over one local transport that they enter in turns.
class Between {
 public:
  std::shared_ptr<Transport> transport() { return std::make_shared<Side>(*this); }

 private:
  class Side final : public Transport {
   public:
    explicit Side(Between& between) : between_(between) {}

    std::uint32_t connect(const PiperCommunicator& communicator) override {
      const std::lock_guard lock(between_.mutex_);
      return between_.local_->connect(communicator);
    }
    void disconnect() override {
      between_.both_.arrive_and_wait();
      own_.clear();
    }
    void start(Operation& operation) override {
      const std::lock_guard lock(between_.mutex_);
      Operation& own = own_[&operation];
      own = operation;
      between_.local_->start(own);
      tell(own, operation);
    }
    void poll(Operation& operation) override {
      const std::lock_guard lock(between_.mutex_);
      Operation& own = own_.at(&operation);
      between_.local_->poll(own);
      tell(own, operation);
    }
    bool moving(const Operation& operation) const override {
      const std::lock_guard lock(between_.mutex_);
      return between_.local_->moving(own_.at(&operation));
    }
    bool moves_only_on_start() const override { return false; }

   private:
    static void tell(const Operation& own, Operation& operation) {
      operation.state = own.state;
      operation.error = own.error;
      operation.error_value = own.error_value;
    }

    Between& between_;
    std::map<const Operation*, Operation> own_;  // which the other side may change
  };

  std::mutex mutex_;
  std::unique_ptr<Transport> local_ = make_local_transport();
  std::barrier<std::function<void()>> both_{2, [this]() noexcept { local_->disconnect(); }};
};

/// A process of two: the pipeline, of which it has a rank.
struct Process {
  std::uint32_t rank;
  ProcessGroup& group;
  Executor& executor;
};

/// `add`: to the programs of all ranks, which each process has.
void with_processes(const std::function<void(Process&)>& use,
                    const std::function<void(HandJob&)>& add = {}) {
  Between between;
  std::barrier ended(2);
  with_ranks(2, [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& apart) {
    ASSERT_TRUE(group) << apart.message;
    HandJob job(2);
    add_pipeline(job);
    if (add) add(job);
    const PiperJob& whole = job.finish();
    PiperJob own = whole;
    own.ranks += rank;
    own.num_ranks = 1;
    ExecutorOptions options;
    options.record = true;
    Failure failure;
    const auto executor = Executor::create(own, make_cpu_device({.transport = between.transport()}),
                                           options, failure, {group.get(), &whole});
    EXPECT_TRUE(executor) << describe(failure);
    Process process{rank, *group, *executor};
    if (executor) use(process);
    // The process is gone; its memory stays while the other may look at it.
    group.reset();
    ended.arrive_and_wait();
  });
}

TEST(SeveralProcesses, RankZeroHasTheNumbersOfAll) {
  with_processes([](Process& process) {
    double w = 0.5;
    std::vector<double> losses;
    for (const std::uint64_t steps : {1, 30}) {
      const RunResult result =
          process.executor.run(Phase::training, steps, [&](const StepRecord& step) {
            losses.push_back(step.loss);
            return std::nullopt;
          });
      EXPECT_EQ(result.ended, Ended::finished) << describe(result.failure.value_or(Failure()));
      EXPECT_EQ(result.steps, steps);
    }
    const std::vector<double> expected = expected_losses(31, w);
    const auto weight = process.executor.read_parameter("w", ParamTensor::values);
    EXPECT_EQ(process.executor.parameter_names(), std::vector<std::string>{"w"});
    // The last rank reports, the first one has the parameter.
    EXPECT_EQ(losses, expected);
    if (process.rank == 0) {
      ASSERT_TRUE(weight);
      EXPECT_EQ(weight->values, std::vector<double>{w});
      ASSERT_EQ(process.executor.recorded().size(), 2u);
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(process.executor.recorded()[rank].rank, rank);
        EXPECT_FALSE(process.executor.recorded()[rank].actions.empty());
      }
    } else {
      EXPECT_FALSE(weight);
      EXPECT_TRUE(process.executor.recorded().empty());
    }
    process.group.leave();
  });
}

/// The writer's thread sends checksums while the end of a run collects what was recorded.
TEST(SeveralProcesses, RecordsAndChecksumsDoNotMix) {
  const test::TemporaryFolder folder;
  constexpr std::uint64_t kCheckpoints = 20;
  with_processes([&](Process& process) {
    CheckpointWriter writer(process.executor.state_memory(),
                            {.out_folder = folder.path(), .run = {.batch = 1, .train = "drawn"}});
    for (std::uint64_t i = 0; i < kCheckpoints; ++i) {
      EXPECT_FALSE(writer.save(process.executor.next_step()));
      const RunResult result =
          process.executor.run(Phase::training, 2, [](const StepRecord&) { return std::nullopt; });
      EXPECT_EQ(result.ended, Ended::finished) << describe(result.failure.value_or(Failure()));
      EXPECT_EQ(process.executor.recorded().size(), process.rank == 0 ? 2u : 0u);
    }
    EXPECT_FALSE(writer.finish());
    process.group.leave();
  });
  EXPECT_EQ(complete_steps(folder.path()).size(), kCheckpoints);
}

TEST(SeveralProcesses, ReadTheSameData) {
  const test::TemporaryFolder folder;
  const std::string paths[] = {folder.write("a", std::string(40, 'x')),
                               folder.write("b", std::string(40, 'y'))};
  Between between;
  with_ranks(2, [&](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& apart) {
    ASSERT_TRUE(group) << apart.message;
    HandJob job(2);
    add_pipeline(job);
    PiperData& data = job.tables().data;
    data.kind = PIPER_BYTES;
    data.path = paths[rank].c_str();
    data.batch = 2;
    data.seq = 8;
    const PiperJob& all_ranks = job.finish();
    PiperJob one_rank = all_ranks;
    one_rank.ranks += rank;
    one_rank.num_ranks = 1;
    Failure failure;
    EXPECT_FALSE(Executor::create(one_rank, make_cpu_device({.transport = between.transport()}), {},
                                  failure, {group.get(), &all_ranks}));
    EXPECT_EQ(failure.code, kProgramsDiffer);
    EXPECT_TRUE(
        failure.message.starts_with("rank 1 has other data than rank 0: `bytes, windows of 8"))
        << failure.message;
  });
}

TEST(SeveralProcesses, AStopAtAnyStopsAllAtOneStep) {
  for (const std::uint32_t who : {0u, 1u}) {
    std::uint64_t steps[2] = {};
    with_processes([&](Process& process) {
      const RunResult result =
          process.executor.run(Phase::training, 1'000'000, [&](const StepRecord& step) {
            if (process.rank == who && step.local_step == 20) process.executor.request_stop();
            return std::nullopt;
          });
      EXPECT_EQ(result.ended, Ended::stopped) << describe(result.failure.value_or(Failure()));
      steps[process.rank] = result.steps;
      double w = 0.5;
      expected_losses(result.steps, w);
      const auto weight = process.executor.read_parameter("w", ParamTensor::values);
      if (process.rank == 0) {
        EXPECT_EQ(weight->values[0], w);
      }
      EXPECT_EQ(process.executor.run(Phase::training, 5).steps, 0u);
      process.group.leave();
    });
    EXPECT_EQ(steps[0], steps[1]);
    EXPECT_GT(steps[who], 20u);
    EXPECT_LT(steps[who], 100'000u);
  }
}

TEST(SeveralProcesses, AFailureOfOneIsThatOfAll) {
  for (const std::uint32_t who : {0u, 1u}) {
    const auto add = [who](HandJob& job) {
      job.rank(who).compute("bad", {}, [](Step& step) {
        return step.rank->step == 3
                   ? step.api->fail(step.rank, step.action, nullptr, "index out of range", 300)
                   : 0;
      });
    };
    with_processes(
        [&](Process& process) {
          const RunResult result = process.executor.run(Phase::training, 1000);
          ASSERT_EQ(result.ended, Ended::failed);
          EXPECT_EQ(result.failure->message, "index out of range: `300`");
          EXPECT_EQ(result.failure->rank, who);
          EXPECT_EQ(result.failure->place.action, "bad");
          EXPECT_EQ(process.executor.run(Phase::training, 1).ended, Ended::failed);
        },
        add);
  }
}

TEST(SeveralProcesses, AFailureOfACallbackEndsAll) {
  with_processes([](Process& process) {
    const RunResult result = process.executor.run(
        Phase::training, 1'000'000, [&](const StepRecord& step) -> std::optional<Failure> {
          if (process.rank != 0 || step.local_step < 5) return std::nullopt;
          return Failure{.code = kOutputUnwritable, .message = "no space"};
        });
    ASSERT_EQ(result.ended, Ended::failed);
    EXPECT_EQ(result.failure->code, kOutputUnwritable);
  });
}

/// The waiting process names the lost process and the action in which it waits.
TEST(SeveralProcesses, NoProcessWaitsForADeadPeer) {
  with_processes([](Process& process) {
    const RunResult result =
        process.executor.run(Phase::training, process.rank == 1 ? 4 : 1'000'000);
    if (process.rank == 1) return;
    ASSERT_EQ(result.ended, Ended::failed);
    EXPECT_EQ(result.failure->code, kProcessLost);
    EXPECT_EQ(result.failure->rank, 0u);
    EXPECT_FALSE(result.failure->place.action.empty());
    EXPECT_GE(result.failure->step, 3u);
  });
}

TEST(SeveralProcesses, RanksThatNobodyReachesAreRefused) {
  with_ranks(2, [](std::uint32_t rank, std::unique_ptr<ProcessGroup> group, const Failure& apart) {
    ASSERT_TRUE(group) << apart.message;
    HandJob job(2);
    add_pipeline(job);
    const PiperJob& whole = job.finish();
    PiperJob own = whole;
    own.ranks += rank;
    own.num_ranks = 1;
    const auto refused = [](const PiperJob& job, std::shared_ptr<Transport> transport,
                            const Processes& processes) {
      Failure failure;
      EXPECT_FALSE(Executor::create(job, make_cpu_device({.transport = std::move(transport)}), {},
                                    failure, processes));
      EXPECT_EQ(failure.code, kBadJob);
      return failure.message;
    };
    Between between;
    EXPECT_EQ(
        refused(own, between.transport(), {}),
        "ranks of other processes need a group of processes, which carries stops, reports and failures");
    EXPECT_EQ(refused(own, nullptr, {group.get(), &whole}),
              "ranks of other processes cannot be reached by the local transport");
    EXPECT_EQ(refused(whole, between.transport(), {group.get(), &whole}),
              "a process has its share of all ranks");
    group->leave();
  });
}

}  // namespace
}  // namespace piper::runtime
