// Checkpoints of a train: when they are written, what a run from one of them does, and what is left
// of a process that was killed.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/launch/train.h"
#include "tests/runtime/sample_jobs.h"
#include "tests/support/random_cases.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

using test::Random;
using test::TemporaryFolder;
using Steps = std::vector<std::uint64_t>;

constexpr std::uint64_t kElements = 3000;

double counted_value(std::uint64_t steps, std::uint64_t i, double slot) {
  return slot * (static_cast<double>(steps) + 1e-4 * static_cast<double>(i));
}

/// Two ranks with a parameter each, whose elements and slots count the steps: `p0` and `p1`. The
/// loss is the number of the step.
class CountingJob {
 public:
  explicit CountingJob(std::uint64_t first_step = 0) : job_(2) {
    for (std::uint32_t r = 0; r < 2; ++r) {
      HandProgram& program = job_.rank(r);
      const std::uint64_t values = program.allocate<double>(kElements),
                          slots = program.allocate<double>(kElements);
      program.end_state();
      program
          .param("p" + std::to_string(r), values, PIPER_NO_OFFSET, kElements, PIPER_F64,
                 PIPER_ZEROS, 0)
          .slot_offsets[0] = slots;
      program.compute("count", {}, [=](Step& step) {
        const std::uint64_t steps = step.rank->global_step + 1;
        for (std::uint64_t i = 0; i < kElements; ++i) {
          step.at<double>(values)[i] = counted_value(steps, i, 1);
          step.at<double>(slots)[i] = counted_value(steps, i, -1);
        }
        const double loss = static_cast<double>(steps);
        if (r == 0) step.api->report(step.rank, 0, &loss, 1);
        return 0;
      });
    }
    job_.loss("steps", 1);
    PiperJob& tables = job_.tables();
    tables.first_step = first_step;
    job_.finish();
  }
  PiperJob& tables() { return job_.tables(); }

 private:
  HandJob job_;
};

/// Loads a checkpoint into an executor of the job.
std::optional<Failure> load(const std::string& folder, const Executor& executor) {
  Failure failure;
  const auto checkpoint = Checkpoint::open(folder, failure);
  if (!checkpoint) return failure;
  return checkpoint->load(executor.state_memory(), Restored::all);
}

/// A checkpoint holds the state after its step, on all ranks.
void expect_state_after(const std::string& folder, std::uint64_t step) {
  CountingJob job;
  ExecutorOptions options;
  options.first_values = false;
  const auto executor = create(job.tables(), options);
  ASSERT_TRUE(executor);
  const auto failure = load(folder, *executor);
  ASSERT_FALSE(failure) << describe(*failure);
  for (const char* name : {"p0", "p1"}) {
    for (const auto& [part, sign] :
         {std::pair{ParamTensor::values, 1.0}, {ParamTensor::slot0, -1.0}}) {
      const auto tensor = executor->read_parameter(name, part);
      ASSERT_TRUE(tensor);
      for (std::uint64_t i = 0; i < kElements; ++i)
        ASSERT_EQ(tensor->values[i], counted_value(step, i, sign))
            << folder << ", " << name << ", " << i;
    }
  }
}

TEST(CheckpointTrain, CheckpointsFollowTheJob) {
  struct Row {
    std::uint64_t first, steps, every, keep;
    Steps left;
  };
  for (const Row& row :
       {Row{0, 10, 0, 0, {10}}, Row{0, 10, 3, 0, {3, 6, 9, 10}}, Row{0, 10, 5, 0, {5, 10}},
        Row{0, 10, 3, 2, {9, 10}}, Row{0, 10, 1, 1, {10}}, Row{0, 10, 100, 0, {10}},
        Row{4, 6, 3, 0, {6, 9, 10}}, Row{6, 4, 3, 0, {9, 10}},
        Row{0, 3, UINT64_MAX, UINT64_MAX, {3}}, Row{7, 0, 1, 0, {7}}}) {
    const TemporaryFolder folder;
    CountingJob job(row.first);
    PiperJob& tables = job.tables();
    tables.steps = row.steps;
    tables.checkpoint_every = row.every;
    tables.checkpoint_keep = row.keep;
    const auto executor = create(tables);
    ASSERT_TRUE(executor);
    const TrainResult result = train(*executor, tables, {.checkpoint_folder = folder.path()});
    ASSERT_FALSE(result.failure) << describe(*result.failure);
    EXPECT_TRUE(result.trained);
    EXPECT_EQ(result.steps, row.steps);
    EXPECT_EQ(complete_steps(folder.path()), row.left);
    EXPECT_EQ(result.checkpoint,
              row.left.empty() ? "" : (folder.path() / step_folder(row.left.back())).string());
    if (row.steps == 0) continue;  // a run of no step keeps its first values
    for (const std::uint64_t step : row.left)
      expect_state_after(folder.path() / step_folder(step), step);
  }
}

TEST(CheckpointTrain, WithoutAFolderNothingIsWritten) {
  CountingJob job;
  job.tables().checkpoint_every = 1;
  const auto executor = create(job.tables());
  ASSERT_TRUE(executor);
  EXPECT_EQ(train(*executor, job.tables(), {}).checkpoint, "");
}

/// A pipeline that goes on from any step has the losses of one that was never interrupted.
TEST(CheckpointTrain, ARunGoesOnFromAnyStep) {
  constexpr std::uint64_t kSteps = 8;
  double w = 0.5;
  const std::vector<double> expected = expected_losses(kSteps, w);
  for (std::uint64_t before = 1; before < kSteps; ++before) {
    const TemporaryFolder folder;
    std::vector<double> losses;
    for (const bool resumed : {false, true}) {
      HandJob job(2);
      add_pipeline(job);
      PiperJob& tables = job.tables();
      tables.first_step = resumed ? before : 0;
      tables.steps = resumed ? kSteps - before : before;
      ExecutorOptions options;
      options.first_values = !resumed;
      const auto executor = create(job.finish(), options);
      ASSERT_TRUE(executor);
      EXPECT_EQ(executor->next_step(), resumed ? before : 0);
      if (resumed) {
        const auto failure = load(folder.path() / step_folder(before), *executor);
        ASSERT_FALSE(failure) << describe(*failure);
      }
      const TrainResult result = train(*executor, tables, {.checkpoint_folder = folder.path()});
      ASSERT_FALSE(result.failure) << describe(*result.failure);
      EXPECT_EQ(result.first_loss, expected[resumed ? before : 0]);
      EXPECT_EQ(result.last_loss, expected[resumed ? kSteps - 1 : before - 1]);
      if (resumed) {
        EXPECT_EQ(executor->read_parameter("w", ParamTensor::values)->values[0], w);
      }
    }
    EXPECT_EQ(complete_steps(folder.path()), (Steps{before, kSteps}));
  }
}

/// A stop leaves a checkpoint of the step at which it ended.
TEST(CheckpointTrain, AStoppedRunKeepsItsState) {
  const TemporaryFolder folder;
  CountingJob job;
  PiperJob& tables = job.tables();
  tables.steps = 1'000'000'000;
  const auto executor = create(tables);
  ASSERT_TRUE(executor);
  const TrainResult result = train(
      *executor, tables, {.checkpoint_folder = folder.path(), .write = [&](const std::string&) {
                            executor->request_stop();
                          }});
  EXPECT_EQ(result.ended, Ended::stopped);
  EXPECT_FALSE(result.failure);
  EXPECT_FALSE(result.trained);
  EXPECT_EQ(complete_steps(folder.path()), Steps{result.steps});
  expect_state_after(result.checkpoint, result.steps);
}

/// The first failure ends the run, and earlier checkpoints stay.
TEST(CheckpointTrain, AFolderThatCannotBeWrittenEndsTheRun) {
  const TemporaryFolder folder;
  folder.write("step-6/mine", "");
  CountingJob job;
  PiperJob& tables = job.tables();
  tables.steps = 1'000'000'000;
  tables.checkpoint_every = 2;
  const auto executor = create(tables);
  ASSERT_TRUE(executor);
  const TrainResult result = train(*executor, tables, {.checkpoint_folder = folder.path()});
  EXPECT_EQ(result.ended, Ended::failed);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->code, kOutputUnwritable);
  EXPECT_EQ(complete_steps(folder.path()), (Steps{2, 4}));
  EXPECT_LE(result.steps, 8u);
}

// ---- a process that is killed

/// Trains in the folder until it is killed, from its last checkpoint on.
[[noreturn]] void train_until_killed(const std::string& folder) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (remove_partial_checkpoints(folder)) _exit(3);
  const Steps steps = complete_steps(folder);
  CountingJob job(steps.empty() ? 0 : steps.back());
  PiperJob& tables = job.tables();
  tables.steps = 1'000'000'000;
  tables.checkpoint_every = 1;
  tables.checkpoint_keep = 2;
  ExecutorOptions options;
  options.first_values = steps.empty();
  Failure failure;
  const auto executor = Executor::create(tables, make_cpu_device({}), options, failure);
  if (!executor) _exit(4);
  if (!steps.empty() && load(folder + "/" + step_folder(steps.back()), *executor)) _exit(5);
  train(*executor, tables, {.checkpoint_folder = folder});
  _exit(6);  // it never ends by itself
}

/// Waits until the condition holds, or for a minute.
template <typename Condition>
bool wait_for(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Killed at any moment, a run leaves a latest checkpoint that loads, and goes on from it.
TEST(CheckpointTrain, AKilledRunLeavesCompleteCheckpoints) {
  constexpr int kKills = 30;
  const TemporaryFolder folder;
  Random random(1);
  std::uint64_t last = 0;
  std::size_t before = 2;
  for (int kills = 0; kills < kKills; ++kills) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) train_until_killed(folder.path());
    const bool moved = wait_for([&] {
      const Steps steps = complete_steps(folder.path());
      return (!steps.empty() && steps.back() > last) || waitpid(child, nullptr, WNOHANG) != 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(8000)));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child) << "it ended by itself";
    ASSERT_TRUE(moved && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "exit code " << WEXITSTATUS(status);
    const Steps steps = complete_steps(folder.path());
    ASSERT_FALSE(steps.empty());
    ASSERT_GT(steps.back(), last);
    // One more, if it was killed before it could remove the oldest.
    ASSERT_LE(steps.size(), before + 1);
    before = std::max<std::size_t>(2, steps.size());
    for (const std::uint64_t step : steps)
      expect_state_after(folder.path() / step_folder(step), step);
    if (HasFailure()) return;
    last = steps.back();
  }
}

}  // namespace
}  // namespace piper::runtime
