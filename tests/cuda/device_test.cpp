// Properties shared by a GPU and by the host in its place: first values, insufficient memory, and
// memory that does not grow. Runs in cuda_run_test and in gpu_test.

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "runtime/cuda/gpu.h"
#include "runtime/device/state.h"
#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/test_device.h"
#include "tests/cuda/watched_driver.h"

namespace piper::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

/// A program of one rank or of several, planned and with its kernels built, for executors over
/// drivers that are watched.
class Watched {
 public:
  Watched(TestDevice& device, const std::string& text)
      : device_(device), law_(text, tensor::DType::f32) {
    if (!law_.program || !*law_.program) return;
    LawRunOptions options;
    options.kernels = &kernels_;
    job_ = law_.program->make_job(options);
    images_ = {device.build(kernels_), device.build_own()};
  }
  explicit operator bool() const { return job_ != nullptr; }
  const PiperJob& tables() const { return job_->tables(); }

  std::unique_ptr<runtime::Executor> executor(Watch& watch, runtime::Failure& failure) {
    return executors_on(images_, [&] {
      return std::make_unique<WatchedDriver>(device_.open(), watch);
    })(*job_, {}, failure);
  }

 private:
  TestDevice& device_;
  CudaLaw law_;
  backend::cuda::KernelSet kernels_;
  std::unique_ptr<backend::Job> job_;
  std::vector<std::string> images_;
};

std::string mlp_of(const std::string& width) {
  return "use std.models.mlp\nmesh one(d: 1)\ntrain small = mlp(layers: 2, features: " + width +
         ", hidden: " + width +
         ", classes: 3) on one {\n    data:  synthetic(batch: 8, classes: 3)\n    optim: adamw(lr: 1e-3)\n    steps: 3\n}\n";
}

class Device : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    device_ = find_test_device(reason);
    if (!device_) GTEST_SKIP() << reason;
  }
  /// After a failure the device is as it was: a small program trains on it.
  void trains() {
    Watched small(*device_, kMlp);
    ASSERT_TRUE(small);
    Watch watch;
    runtime::Failure failure;
    const auto executor = small.executor(watch, failure);
    ASSERT_TRUE(executor) << failure.message;
    EXPECT_EQ(executor->run(runtime::Phase::training, 3).ended, runtime::Ended::finished);
  }

  std::unique_ptr<TestDevice> device_;
};

/// They are made on the device, with the bits that the host's arithmetic gives.
TEST_F(Device, FirstValuesAreThoseOfTheHost) {
  Watched program(*device_, mlp_of("256"));
  ASSERT_TRUE(program);
  Watch watch;
  runtime::Failure failure;
  const auto executor = program.executor(watch, failure);
  ASSERT_TRUE(executor) << failure.message;
  const PiperJob& job = program.tables();
  std::uint64_t drawn = 0;
  for (std::uint32_t p = 0; p < job.ranks[0].program->num_params; ++p) {
    const PiperParam& param = job.ranks[0].program->params[p];
    const auto found = executor->read_parameter(param.name, runtime::ParamTensor::values);
    ASSERT_TRUE(found && found->values.size() == param.elements) << param.name;
    const piper_random_key key = runtime::first_values_key(param, job.seed);
    std::size_t different = 0;
    for (std::uint64_t i = 0; i < param.elements; ++i)
      different += found->values[i] !=
                   static_cast<float>(piper_first_value(param.init, param.scale, key, i));
    EXPECT_EQ(different, 0u) << param.name;
    drawn += param.init == PIPER_NORMAL || param.init == PIPER_UNIFORM ? param.elements : 0;
  }
  EXPECT_GT(drawn, std::uint64_t{1} << 16);
}

TEST_F(Device, ArenasThatDoNotFit) {
  // Two weights of 64 GiB, and three times that for gradient and optimizer.
  Watched large(*device_, mlp_of("131072"));
  ASSERT_TRUE(large);
  Watch watch;
  runtime::Failure failure;
  EXPECT_FALSE(large.executor(watch, failure));
  EXPECT_EQ(failure.code, runtime::kCudaOutOfMemory) << failure.message;
  EXPECT_NE(failure.message.find("do not fit on"), std::string::npos) << failure.message;
  EXPECT_NE(failure.hint.find("piper show memory"), std::string::npos) << failure.hint;
  trains();
}

/// The arenas would fit, but another process takes the memory before they are allocated: the driver
/// refuses.
TEST_F(Device, MemoryThatAnotherHas) {
  Watched medium(*device_, mlp_of("1024"));
  ASSERT_TRUE(medium);
  Watch watch;
  watch.leaves = 4 * kMiB;
  runtime::Failure failure;
  EXPECT_FALSE(medium.executor(watch, failure));
  EXPECT_EQ(failure.code, runtime::kCudaOutOfMemory) << failure.message;
  EXPECT_NE(failure.message.find("`cuMemAlloc` failed"), std::string::npos) << failure.message;
  trains();
}

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// `TRAINING_SECONDS` says how long; once its steps are captured a run makes nothing more, on the
/// device or on the host.
TEST_F(Device, TrainingTakesNoMoreMemoryWithTime) {
  const char* const given = std::getenv("TRAINING_SECONDS");
  const double seconds = given == nullptr ? 1 : std::strtod(given, nullptr);
  Watched program(
      *device_,
      noisy_source(
          "replicate model over dp with bucket: 256, zero: 1\n    offload layer[1], layer[4] with window: 1"));
  ASSERT_TRUE(program);
  Watch watch;
  runtime::Failure failure;
  const auto executor = program.executor(watch, failure);
  ASSERT_TRUE(executor) << failure.message;
  std::uint64_t steps = 0, made = 0, most_made = 0;
  const auto run = [&](std::uint64_t count) {
    const runtime::RunResult result =
        executor->run(runtime::Phase::training, count, [&](const runtime::StepRecord& step) {
          // The third, before which the graphs were made.
          if (steps + step.local_step == runtime::cuda::kStepsInFlight) made = watch.created;
          most_made = watch.created;
          return std::nullopt;
        });
    steps += result.steps;
    return result.ended == runtime::Ended::finished;
  };
  const auto free = [&] {
    std::uint64_t bytes = 0;
    EXPECT_EQ(watch.driver->free_bytes(&bytes), runtime::cuda::kSuccess);
    return bytes;
  };
  ASSERT_TRUE(run(runtime::cuda::kStepsInFlight + 2));
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // Allocators and the driver have reached their final size after a tenth of the time.
  do {
    ASSERT_TRUE(run(8));
  } while (elapsed() < seconds / 10);
  [[maybe_unused]] const std::uint64_t resident = resident_bytes();
  const std::uint64_t on_device = free();
  do {
    ASSERT_TRUE(run(8));
  } while (elapsed() < seconds);
  for (const runtime::Failure& warning : executor->warnings()) ADD_FAILURE() << warning.message;
  EXPECT_EQ(most_made, made) << "after " << steps << " steps";
// those keep freed memory for a while
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(resident_bytes(), resident + 4 * kMiB) << "after " << steps << " steps";
#endif
  EXPECT_GE(free() + 2 * kMiB, on_device) << "after " << steps << " steps";
  RecordProperty("steps", static_cast<int>(steps));
}

}  // namespace
}  // namespace piper::test
