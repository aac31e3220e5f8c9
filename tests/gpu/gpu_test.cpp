// The runtime on a real GPU: `make test-gpu`. Everywhere else each test says why it did not run.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "runtime/cuda/nccl.h"
#include "runtime/device/library_calls.h"
#include "tests/cuda/cuda_laws.h"
#include "tests/gpu/gpu_device.h"
#include "tests/laws/library_cases.h"

namespace piper::test {
namespace {

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    gpu_ = find_gpu(reason);
    if (!gpu_) GTEST_SKIP() << reason;
  }

  std::string compiled(const std::string& source) const { return gpu_->compiled(source); }
  MakeDriver drivers() const {
    return [this] { return gpu_->open(); };
  }
  /// Runs a program on the GPU, twice, and compares with the interpreter on the CPU.
  void compare(const std::string& text, tensor::DType dtype, double bound) const {
    SCOPED_TRACE(text);
    CudaLaw law(text, dtype);
    ASSERT_TRUE(law.program && *law.program);
    backend::cuda::KernelSet kernels;
    LawRunOptions options;
    options.kernels = &kernels;
    options.held_out_steps = 1;
    const LawRun oracle = law.program->run(options);
    options.executor = executors_on({compiled(kernels.source()), compiled(backend::cuda::runtime_kernels_source())}, drivers());
    const LawRun run = law.program->run(options);
    ASSERT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_difference(run, oracle, bound), "");
    EXPECT_EQ(first_bit_difference(law.program->run(options), run), "");
  }

  std::unique_ptr<GpuDevice> gpu_;
};

struct Bound {
  tensor::DType dtype;
  double bound;
};
/// f32: sums in another order. bf16: that rounds some results to a neighbour, 2^-8 away.
constexpr Bound kBounds[] = {{tensor::DType::f64, 1e-10}, {tensor::DType::f32, 1e-3}, {tensor::DType::bf16, 0x1p-6}};

TEST_F(Gpu, OneRank) {
  for (const Bound& each : kBounds) compare(kMlp, each.dtype, each.bound);
}

TEST_F(Gpu, EveryWayToCut) {
  for (const auto& [name, lines] : kNoisyLines) {
    SCOPED_TRACE(name);
    for (const Bound& each : kBounds) compare(noisy_source(lines), each.dtype, each.bound);
  }
}

class GpuLibrary : public Gpu {
 protected:
  void every_schedule(const Bound& bound) const;
};

void GpuLibrary::every_schedule(const Bound& bound) const {
  for (const LibraryCase& each : library_cases()) {
    for (const char* zero : {"zero: 1", "zero: 2", "zero: 3, prefetch: 1"}) {
      if (each.replicates && zero != std::string("zero: 1")) continue;
      compare(gpt_source(each, zero), bound.dtype, bound.bound);
    }
  }
}

TEST_F(GpuLibrary, EverySchedule) { every_schedule(kBounds[0]); }

/// Attention of bf16 is that of LibTorch.
TEST_F(GpuLibrary, EveryScheduleInBf16) {
  if (!gpu_->no_torch().empty()) GTEST_SKIP() << "no LibTorch for CUDA: " << gpu_->no_torch();
  every_schedule(kBounds[2]);
}

/// Forward and gradient by LibTorch's kernels, in the third step as part of a graph.
TEST_F(Gpu, AttentionOfLibTorch) {
  if (!gpu_->no_torch().empty()) GTEST_SKIP() << "no LibTorch for CUDA: " << gpu_->no_torch();
  compare(kAttention, tensor::DType::f32, 1e-3);
}

/// Graphs give the bits of steps that are enqueued action by action, and the driver takes all that a step has.
TEST_F(Gpu, StepsAreCaptured) {
  CudaLaw law(noisy_source("replicate model over dp with zero: 1\n    offload layer[1], layer[4] with window: 1"));
  ASSERT_TRUE(law.program && *law.program);
  backend::cuda::KernelSet kernels;
  LawRunOptions options;
  options.kernels = &kernels;
  const auto job = law.program->make_job(options);
  ASSERT_TRUE(job);
  const auto losses = [&](bool graphs) {
    std::vector<double> found;
    runtime::Failure failure;
    const auto executor = executors_on({compiled(kernels.source()), compiled(backend::cuda::runtime_kernels_source())}, drivers())(*job, with_graphs(graphs), failure);
    EXPECT_TRUE(executor) << describe(failure);
    if (!executor) return found;
    const runtime::RunResult result = executor->run(runtime::Phase::training, 8, [&](const runtime::StepRecord& step) {
      found.push_back(step.loss);
      return std::nullopt;
    });
    EXPECT_EQ(result.ended, runtime::Ended::finished);
    for (const runtime::Failure& warning : executor->warnings()) ADD_FAILURE() << describe(warning);
    return found;
  };
  const std::vector<double> captured = losses(true);
  EXPECT_EQ(captured.size(), 8u);
  EXPECT_EQ(captured, losses(false));
}

/// NCCL with a communicator of one member: every kind of collective, on a stream and in a graph. Between several GPUs it is tried by hand (README.md).
TEST_F(Gpu, NcclWithOneRank) {
  std::string path, reason;
  if (backend::cuda::open_library(cuda_environment(), "libnccl.so", {}, path, reason) == nullptr) GTEST_SKIP() << "no NCCL: " << reason;
  namespace cuda = runtime::cuda;
  runtime::Failure failure;
  const auto driver = drivers()();
  const auto nccl = cuda::open_nccl(path, failure);
  ASSERT_TRUE(driver && nccl) << describe(failure);
  const auto settle = [&](cuda::NcclCommunicator communicator) {
    cuda::NcclResult state = cuda::kNcclInProgress;
    while (nccl->state(communicator, &state) == cuda::kNcclSuccess && state == cuda::kNcclInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return state;
  };
  const auto fine = [](cuda::NcclResult result) { return result == cuda::kNcclSuccess || result == cuda::kNcclInProgress; };
  cuda::NcclId id{};
  ASSERT_EQ(nccl->make_id(&id), cuda::kNcclSuccess);
  cuda::NcclCommunicator communicator = nullptr;
  const cuda::NcclResult opened = nccl->open(&communicator, 1, id, 0, 4);
  ASSERT_TRUE(fine(opened)) << nccl->text_of(opened, communicator);
  ASSERT_EQ(settle(communicator), cuda::kNcclSuccess) << nccl->text_of(opened, communicator);

  cuda::Stream stream = nullptr;
  cuda::Event event = nullptr;
  unsigned char *device = nullptr, *host = nullptr;
  ASSERT_EQ(driver->create_stream(cuda::Priority::communication, &stream), cuda::kSuccess);
  ASSERT_EQ(driver->create_event(&event), cuda::kSuccess);
  ASSERT_EQ(driver->allocate(512, &device), cuda::kSuccess);
  ASSERT_EQ(driver->allocate_host(512, &host), cuda::kSuccess);
  const auto finish = [&] {
    ASSERT_EQ(driver->record(event, stream), cuda::kSuccess);
    cuda::Status status = cuda::kNotReady;
    while ((status = driver->query(event)) == cuda::kNotReady) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(status, cuda::kSuccess) << driver->text_of(status);
  };
  for (const bool captured : {false, true}) {
    for (const cuda::NcclKind kind : {cuda::NcclKind::all_reduce, cuda::NcclKind::broadcast, cuda::NcclKind::reduce_scatter, cuda::NcclKind::all_gather}) {
      SCOPED_TRACE(std::string(cuda::name_of(kind)) + (captured ? " in a graph" : ""));
      double& from = *reinterpret_cast<double*>(host);
      double& to = *reinterpret_cast<double*>(host + 256);
      from = 3.25;
      to = 0;
      cuda::Graph graph = nullptr;
      if (captured) {
        ASSERT_EQ(driver->begin_capture(stream), cuda::kSuccess);
      }
      ASSERT_EQ(driver->copy(stream, device, host, 8), cuda::kSuccess);
      const cuda::NcclResult called = nccl->enqueue(communicator, stream, {kind, device, device + 256, 1, PIPER_F64, 0});
      ASSERT_TRUE(fine(called)) << nccl->text_of(called, communicator);
      ASSERT_EQ(settle(communicator), cuda::kNcclSuccess);
      ASSERT_EQ(driver->copy(stream, host + 256, device + 256, 8), cuda::kSuccess);
      if (captured) {
        ASSERT_EQ(driver->end_capture(stream, &graph), cuda::kSuccess);
        ASSERT_EQ(driver->launch_graph(stream, graph), cuda::kSuccess);
      }
      finish();
      EXPECT_EQ(to, 3.25);
    }
  }
  ASSERT_TRUE(fine(nccl->finalize(communicator)));
  ASSERT_EQ(settle(communicator), cuda::kNcclSuccess);
  EXPECT_EQ(nccl->destroy(communicator), cuda::kNcclSuccess);
}

/// The kernel that checks indices stops the device: the action that started it is named, with its line.
TEST_F(Gpu, AKernelThatFailsIsNamed) {
  const LibraryCase whole{"gpipe", "gpipe(pp, 4)", 2};
  CudaLaw law(gpt_source(whole));
  ASSERT_TRUE(law.program && *law.program);
  backend::cuda::KernelSet kernels;
  LawRunOptions options;
  options.kernels = &kernels;
  const auto job = law.program->make_job(options);
  ASSERT_TRUE(job);
  const std::string stopping = "#define piper_check piper_check_of_the_runtime\n" + backend::cuda::runtime_kernels_source() +
                               "#undef piper_check\nextern \"C\" __global__ void piper_check(const int64_t*, int64_t, int64_t, int64_t, uint32_t, piper_finding*) { asm(\"trap;\"); }\n";
  runtime::Failure failure;
  const auto executor = executors_on({compiled(kernels.source()), compiled(stopping)}, drivers())(*job, {}, failure);
  ASSERT_TRUE(executor) << describe(failure);
  const runtime::RunResult result = executor->run(runtime::Phase::training, 2);
  ASSERT_EQ(result.ended, runtime::Ended::failed);
  EXPECT_EQ(result.failure->code, runtime::kCudaKernelFailed) << describe(*result.failure);
  EXPECT_EQ(result.failure->place.action, "F.stage0.mb0") << describe(*result.failure);
  EXPECT_GT(result.failure->place.line, 0u);
}

}  // namespace
}  // namespace piper::test
