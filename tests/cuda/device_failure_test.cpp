// A library is the first to notice that the device has failed: the run asks an event, and names the
// device and its action (P6017). A library that refuses a call by itself is named as before.

#include <gtest/gtest.h>

#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/recording_driver.h"

namespace piper::test {
namespace {

namespace cuda = runtime::cuda;
using cuda::Status;

constexpr Status kExecutionFailed = cuda::kProductStatus + 13;

/// The outcome of one library call, and of every event after it.
struct LibraryFault {
  std::uint64_t spared = 0;  // calls before it
  Status call = cuda::kSuccess, events = cuda::kSuccess;
};

class FaultyDriver final : public RecordingDriver {
 public:
  FaultyDriver(const KernelOperands& operands, Trace& trace, const LibraryFault& fault,
               std::uint64_t& calls)
      : RecordingDriver(operands, trace), fault_(fault), calls_(calls) {}

  Status call(CudaStream stream, PlannedCall planned, const PiperCall& call) override {
    if (calls_++ != fault_.spared) return RecordingDriver::call(stream, planned, call);
    failed_ = true;
    return fault_.call;
  }
  Status query(Event event) override {
    const Status status = RecordingDriver::query(event);
    return failed_ && fault_.events != cuda::kSuccess ? fault_.events : status;
  }

 private:
  const LibraryFault fault_;
  std::uint64_t& calls_;
  bool failed_ = false;
};

struct FaultyRun {
  runtime::RunResult result;
  std::vector<runtime::Failure> warnings;
  std::uint64_t calls = 0;
};

FaultyRun run(const std::string& text, tensor::DType dtype, const LibraryFault& fault,
              std::uint64_t steps) {
  FaultyRun outcome;
  CudaLaw law(text, dtype);
  const auto job = law.program && *law.program ? law.program->make_job({}) : nullptr;
  EXPECT_TRUE(job);
  if (!job) return outcome;
  const KernelOperands operands = operands_of(*job);
  Trace trace;
  runtime::Failure failure;
  const auto executor = executors_on({""}, [&] {
    return std::make_unique<FaultyDriver>(operands, trace, fault, outcome.calls);
  })(*job, with_graphs(true), failure);
  EXPECT_TRUE(executor) << describe(failure);
  if (!executor) return outcome;
  outcome.result = executor->run(runtime::Phase::training, steps);
  outcome.warnings = executor->warnings();
  return outcome;
}

constexpr std::uint64_t kNone = 1 << 20;

TEST(DeviceFailure, IsAskedOfAnEventIfALibraryNoticesItFirst) {
  struct Outcome {
    Status call, events;
    std::uint32_t code;
  };
  const Outcome products[] = {{kExecutionFailed, 220, runtime::kCudaKernelFailed},
                              {kExecutionFailed, 226, runtime::kCudaKernelFailed},
                              {kExecutionFailed, 700, runtime::kCudaKernelFailed},
                              {kExecutionFailed, 721, runtime::kCudaKernelFailed},
                              {kExecutionFailed, 999, runtime::kCudaKernelFailed},
                              {kExecutionFailed, cuda::kSuccess, runtime::kCudaCallFailed},
                              {719, cuda::kSuccess, runtime::kCudaKernelFailed}};
  const Outcome attentions[] = {
      {cuda::kAttentionRefused, 719, runtime::kCudaKernelFailed},
      {cuda::kAttentionRefused, cuda::kSuccess, runtime::kLibraryFailed},
      {cuda::kAttentionOverrun, cuda::kSuccess, runtime::kWorkspaceOverrun}};
  const auto check = [](const std::string& text, std::uint64_t spared, const Outcome& expected) {
    SCOPED_TRACE("status " + std::to_string(expected.call) + ", then " +
                 std::to_string(expected.events));
    const FaultyRun ended =
        run(text, tensor::DType::f32, {spared, expected.call, expected.events}, 2);
    ASSERT_TRUE(ended.result.failure);
    const runtime::Failure& failure = *ended.result.failure;
    EXPECT_EQ(failure.code, expected.code) << describe(failure);
    const Status said = expected.events == cuda::kSuccess ? expected.call : expected.events;
    EXPECT_NE(failure.message.find("status " + std::to_string(said)), std::string::npos)
        << describe(failure);
    EXPECT_TRUE(failure.place.action.starts_with("F.")) << describe(failure);
  };
  for (const Outcome& product : products) check(kMlp, 0, product);
  // Products of a block's queries, keys and values stand before its attention.
  for (const Outcome& attention : attentions) check(kAttention, 3, attention);
}

/// Nothing is asked while a step is captured: the recording driver refuses that.
TEST(DeviceFailure, InACapturedStepIsNoticedAtItsEnd) {
  const std::uint64_t plain = run(kMlp, tensor::DType::f32, {kNone}, 2).calls;
  ASSERT_GT(plain, 0u);
  const FaultyRun died = run(kMlp, tensor::DType::f32, {plain, kExecutionFailed, 719}, 4);
  ASSERT_TRUE(died.result.failure);
  EXPECT_EQ(died.result.failure->code, runtime::kCudaKernelFailed)
      << describe(*died.result.failure);
  const FaultyRun refused =
      run(kMlp, tensor::DType::f32, {plain, kExecutionFailed, cuda::kSuccess}, 4);
  EXPECT_FALSE(refused.result.failure);
  ASSERT_EQ(refused.warnings.size(), 1u);
  EXPECT_EQ(refused.warnings.front().code, runtime::kCudaNotCaptured);
  EXPECT_NE(refused.warnings.front().message.find("`cublasLtMatmul` failed"), std::string::npos)
      << describe(refused.warnings.front());
}

}  // namespace
}  // namespace piper::test
