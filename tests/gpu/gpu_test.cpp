// The runtime on a real GPU: `make test-gpu`. Everywhere else each test says why it did not run.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "runtime/cuda/nccl.h"
#include "tests/cuda/planned_laws.h"
#include "tests/cuda/watched_driver.h"
#include "tests/gpu/gpu_device.h"
#include "tests/laws/library_cases.h"

namespace piper::test {
namespace {

struct Bound {
  tensor::DType dtype;
  double bound;
};
/// f32: sums in another order. bf16: that rounds some results to a neighbour, 2^-8 away.
constexpr Bound kBounds[] = {
    {tensor::DType::f64, 1e-10}, {tensor::DType::f32, 1e-3}, {tensor::DType::bf16, 0x1p-6}};

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    gpu_ = find_gpu(reason);
    if (!gpu_) GTEST_SKIP() << reason;
  }
  MakeDriver drivers() const {
    return [this] { return gpu_->open(); };
  }

  std::unique_ptr<GpuDevice> gpu_;
};

struct LawCase {
  const PlannedLaw* law = nullptr;
  double bound = 0;
};

/// Programs whose kernels are one image.
class GpuLaws : public Gpu {
 protected:
  static void SetUpTestSuite() {
    std::string reason;
    const auto gpu = find_gpu(reason);
    if (!gpu) return;
    context_ = gpu->open();
    laws_ = std::make_unique<PlannedLaws>();
    for (const Bound& bound : kBounds) {
      const auto add_all = [&](std::vector<LawCase>& to,
                               const std::vector<const PlannedLaw*>& added) {
        for (const PlannedLaw* each : added) to.push_back({each, bound.bound});
      };
      mlp_.push_back({&laws_->add("mlp", kMlp, bound.dtype), bound.bound});
      add_all(lines_, laws_->add_lines(bound.dtype));
      add_all(library_, laws_->add_library(bound.dtype));
    }
    efficient_ = {&laws_->add("attention", kAttention, tensor::DType::f32), 1e-3};
    for (const auto& [heads, kv, width, seq] :
         {std::tuple{2, 2, 64, 128}, {4, 2, 64, 96}, {2, 1, 128, 192}, {2, 2, 128, 512}}) {
      const std::string what = std::to_string(heads) + " heads of " + std::to_string(width) +
                               " over " + std::to_string(kv) + ", " + std::to_string(seq) +
                               " positions";
      flash_.push_back(
          {&laws_->add(what, flash_source(heads, kv, width, seq), tensor::DType::bf16), 0x1p-5});
    }
    laws_->build(*gpu);
  }
  static void TearDownTestSuite() {
    for (auto* list : {&mlp_, &lines_, &library_, &flash_}) list->clear();
    laws_.reset();
    context_.reset();
  }

  /// Runs a program on the GPU and compares with the interpreter on the CPU; `again`: twice, to the
  /// same bits. Gives how often it called LibTorch's attention in a run.
  std::uint64_t compare(const LawCase& each, bool again) const {
    SCOPED_TRACE(each.law->what);
    const LawRun oracle = laws_->interpreted(*each.law);
    Watch watch;
    const MakeDriver watched = [&] { return std::make_unique<WatchedDriver>(gpu_->open(), watch); };
    const LawRun run = laws_->run(*each.law, watched);
    const std::uint64_t attended = watch.attended;
    EXPECT_EQ(run.losses.size(), static_cast<std::size_t>(kLawSteps));
    EXPECT_EQ(first_difference(run, oracle, each.bound), "");
    EXPECT_EQ(again ? first_bit_difference(laws_->run(*each.law, watched), run) : "", "");
    return attended;
  }
  void skip_without_torch() const {
    if (!gpu_->no_torch().empty()) GTEST_SKIP() << "no LibTorch for CUDA: " << gpu_->no_torch();
  }

  // Open while programs come and go: making it takes longer than a run.
  static inline std::unique_ptr<runtime::cuda::Driver> context_;
  static inline std::unique_ptr<PlannedLaws> laws_;
  static inline std::vector<LawCase> mlp_, lines_, library_, flash_;
  static inline LawCase efficient_;
};

TEST_F(GpuLaws, OneRank) {
  for (const LawCase& each : mlp_) compare(each, true);
}

TEST_F(GpuLaws, EveryWayToCut) {
  for (const LawCase& each : lines_) compare(each, true);
}

/// Heads of this GPT are narrow: attention is a kernel of ours in each type.
TEST_F(GpuLaws, EverySchedule) {
  for (const LawCase& each : library_) EXPECT_EQ(compare(each, false), 0u) << each.law->what;
}

/// Forward and gradient by LibTorch's kernels, in the third step as part of a graph: on each of two
/// stages a layer, for two microbatches.
TEST_F(GpuLaws, FlashAttention) {
  skip_without_torch();
  if (IsSkipped()) return;
  for (const LawCase& each : flash_)
    EXPECT_GE(compare(each, true), std::uint64_t{2 * 2 * 2 * kLawSteps}) << each.law->what;
}

TEST_F(GpuLaws, EfficientAttention) {
  skip_without_torch();
  if (IsSkipped()) return;
  EXPECT_GE(compare(efficient_, true), std::uint64_t{2 * 2 * 2 * kLawSteps});
}

/// Graphs give the bits of steps that are enqueued action by action, and the driver takes all that
/// a step has.
TEST_F(GpuLaws, StepsAreCaptured) {
  const auto offloads = std::find_if(lines_.begin(), lines_.end(), [](const LawCase& each) {
    return each.law->what.starts_with("offload");
  });
  ASSERT_NE(offloads, lines_.end());
  const auto job = offloads->law->law->program->make_job(laws_->options());
  ASSERT_TRUE(job);
  const auto losses = [&](bool graphs) {
    std::vector<double> found;
    runtime::Failure failure;
    const auto executor =
        executors_on(laws_->images(), drivers())(*job, with_graphs(graphs), failure);
    EXPECT_TRUE(executor) << describe(failure);
    if (!executor) return found;
    const runtime::RunResult result =
        executor->run(runtime::Phase::training, 8, [&](const runtime::StepRecord& step) {
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

/// NCCL with a communicator of one member: every kind of collective, on a stream and in a graph.
/// Between several GPUs it is tried by hand (README.md).
TEST_F(Gpu, NcclWithOneRank) {
  std::string path, reason;
  if (backend::cuda::open_library(cuda_environment(), "libnccl.so", {}, path, reason) == nullptr)
    GTEST_SKIP() << "no NCCL: " << reason;
  namespace cuda = runtime::cuda;
  runtime::Failure failure;
  const auto driver = drivers()();
  const auto nccl = cuda::open_nccl(path, failure);
  ASSERT_TRUE(driver && nccl) << describe(failure);
  const auto settle = [&](cuda::NcclCommunicator communicator) {
    cuda::NcclResult state = cuda::kNcclInProgress;
    while (nccl->state(communicator, &state) == cuda::kNcclSuccess &&
           state == cuda::kNcclInProgress)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return state;
  };
  const auto fine = [](cuda::NcclResult result) {
    return result == cuda::kNcclSuccess || result == cuda::kNcclInProgress;
  };
  cuda::NcclId id{};
  ASSERT_EQ(nccl->make_id(&id), cuda::kNcclSuccess);
  cuda::NcclCommunicator communicator = nullptr;
  const cuda::NcclResult opened = nccl->open(&communicator, 1, id, 0, 4);
  ASSERT_TRUE(fine(opened)) << nccl->text_of(opened, communicator);
  ASSERT_EQ(settle(communicator), cuda::kNcclSuccess) << nccl->text_of(opened, communicator);

  cuda::CudaStream stream = nullptr;
  cuda::Event event = nullptr;
  unsigned char *device = nullptr, *host = nullptr;
  ASSERT_EQ(driver->create_stream(cuda::Priority::communication, &stream), cuda::kSuccess);
  ASSERT_EQ(driver->create_event(&event), cuda::kSuccess);
  ASSERT_EQ(driver->allocate(512, &device), cuda::kSuccess);
  ASSERT_EQ(driver->allocate_host(512, &host), cuda::kSuccess);
  const auto finish = [&] {
    ASSERT_EQ(driver->record(event, stream), cuda::kSuccess);
    cuda::Status status = cuda::kNotReady;
    while ((status = driver->query(event)) == cuda::kNotReady)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(status, cuda::kSuccess) << driver->text_of(status);
  };
  for (const bool captured : {false, true}) {
    for (const cuda::NcclKind kind :
         {cuda::NcclKind::all_reduce, cuda::NcclKind::broadcast, cuda::NcclKind::reduce,
          cuda::NcclKind::reduce_scatter, cuda::NcclKind::all_gather}) {
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
      const cuda::NcclResult called =
          nccl->enqueue(communicator, stream, {kind, device, device + 256, 1, PIPER_F64, 0});
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
  // It waits for graphs that have calls of it.
  driver->drop_graphs();
  ASSERT_TRUE(fine(nccl->finalize(communicator)));
  ASSERT_EQ(settle(communicator), cuda::kNcclSuccess);
  EXPECT_EQ(nccl->destroy(communicator), cuda::kNcclSuccess);
}

/// The kernel that checks indices stops the device: the action that started it is named, with its
/// line. Ends the process: nothing runs on a device any more that has failed.
void fail_on_the_device() {
  std::string reason;
  const auto gpu = find_gpu(reason);
  const LibraryCase whole{"gpipe", "gpipe(pp, 4)", 2};
  CudaLaw law(gpt_source(whole));
  backend::cuda::KernelSet kernels;
  LawRunOptions options;
  options.kernels = &kernels;
  const auto job = gpu && law.program && *law.program ? law.program->make_job(options) : nullptr;
  const std::string stopping =
      "#define piper_check piper_check_of_the_runtime\n" + backend::cuda::runtime_kernels_source() +
      "#undef piper_check\nextern \"C\" __global__ void piper_check(const int64_t*, int64_t, int64_t, int64_t, uint32_t, piper_finding*) { asm(\"trap;\"); }\n";
  runtime::Failure failure;
  const auto executor =
      job ? executors_on({gpu->compiled(kernels.source()), gpu->compiled(stopping)},
                         [&] { return gpu->open(); })(*job, {}, failure)
          : nullptr;
  if (executor)
    failure = executor->run(runtime::Phase::training, 2).failure.value_or(runtime::Failure());
  std::fprintf(stderr, "P%u at line %u: %s\n", failure.code, failure.place.line,
               describe(failure).c_str());
  _exit(failure.code == runtime::kCudaKernelFailed && failure.place.action == "F.stage0.mb0" &&
                failure.place.line > 0
            ? 0
            : 1);
}

using GpuDeathTest = Gpu;
TEST_F(GpuDeathTest, AKernelThatFailsIsNamed) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(fail_on_the_device(), testing::ExitedWithCode(0), "P6017");
}

}  // namespace
}  // namespace piper::test
