// The driver of a real GPU and cuBLASLt's products, over test libraries with their names and
// functions: the calls, the results of products, and that everything is released.

#include "runtime/cuda/gpu_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>

#include "backend/cuda/libraries.h"
#include "frontend/source/source_manager.h"
#include "frontend/tools/driver.h"
#include "runtime/cuda/cublas_lt.h"
#include "runtime/device_abi.h"
#include "runtime/device/library_calls.h"
#include "runtime/kernel_math.h"
#include "tests/cuda/test_cublas_lt.h"
#include "tests/cuda/test_libcuda.h"
#include "tests/support/test_call.h"

namespace piper::test {
namespace {

using namespace runtime::cuda;

std::string beside(const char* name) {
  return (std::filesystem::canonical("/proc/self/exe").parent_path() / name).string();
}
std::string cublas_lt_file() { return beside("test_cublas_lt/libcublasLt.so.13"); }

GpuChoice choice(int gpu = 0) {
  GpuChoice made;
  made.gpu = gpu;
  made.cublas_lt = cublas_lt_file();
  return made;
}

template <typename Seen>
Seen& seen_by(const std::string& file, const char* function) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return *reinterpret_cast<Seen* (*)()>(dlsym(library, function))();
}

/// A library that is already open is found by its name.
class GpuDriverTest : public testing::Test {
 protected:
  GpuDriverTest()
      : cuda_(seen_by<TestLibcuda>(beside("test_libcuda/libcuda.so.1"), "test_libcuda")) {
    runtime::Failure failure;
    driver_ = open_gpu(choice(1), failure);
    EXPECT_TRUE(driver_) << failure.message;
    cuda_.calls.clear();
  }
  std::string last_call() const { return cuda_.calls.empty() ? "" : cuda_.calls.back(); }

  TestLibcuda& cuda_;
  std::unique_ptr<Driver> driver_;
};

TEST_F(GpuDriverTest, SettingsStandBeforeItIsStarted) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  set_driver_defaults();
  runtime::Failure failure;
  open_gpu(choice(), failure);
  EXPECT_EQ(cuda_.max_connections, "32");
  EXPECT_EQ(cuda_.module_loading, "") << "functions can be loaded one by one";
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  set_driver_defaults();
  open_gpu(choice(), failure);
  EXPECT_EQ(cuda_.max_connections, "1") << "the user has said so";
}

TEST_F(GpuDriverTest, StreamsHaveThreePriorities) {
  for (const auto& [priority, call] :
       {std::pair{Priority::compute, "cuStreamCreateWithPriority 1 0"},
        {Priority::communication, "cuStreamCreateWithPriority 1 -1"},
        {Priority::high, "cuStreamCreateWithPriority 1 -5"}}) {
    CudaStream stream = nullptr;
    ASSERT_EQ(driver_->create_stream(priority, &stream), kSuccess);
    EXPECT_EQ(last_call(), call);
  }
}

TEST_F(GpuDriverTest, GraphsKeepThePrioritiesOfTheirNodesUntilTheyAreDropped) {
  CudaStream stream = nullptr;
  Graph graph = nullptr;
  ASSERT_EQ(driver_->create_stream(Priority::compute, &stream), kSuccess);
  const int before = cuda_.objects;
  ASSERT_EQ(driver_->begin_capture(stream), kSuccess);
  ASSERT_EQ(driver_->end_capture(stream, &graph), kSuccess);
  EXPECT_EQ(last_call(), "cuGraphInstantiateWithFlags 8");
  EXPECT_EQ(cuda_.objects, before + 1) << "what was captured is not kept beside the graph";
  driver_->drop_graphs();
  EXPECT_EQ(last_call(), "cuGraphExecDestroy");
  EXPECT_EQ(cuda_.objects, before);
}

TEST_F(GpuDriverTest, KernelsAreLoadedWhenTheyAreFound) {
  Module module = nullptr;
  Function function = nullptr;
  ASSERT_EQ(driver_->load("image", &module), kSuccess);
  ASSERT_EQ(driver_->find(module, "some", &function), kSuccess);
  EXPECT_EQ(last_call(), "cuFuncLoad");
  EXPECT_NE(driver_->find(module, "missing", &function), kSuccess);
}

TEST_F(GpuDriverTest, LaunchesHaveOneDimension) {
  CudaStream stream = nullptr;
  ASSERT_EQ(driver_->create_stream(Priority::compute, &stream), kSuccess);
  EXPECT_EQ(driver_->launch(stream, nullptr, kMaxBlocks, 256, nullptr), kSuccess);
  EXPECT_EQ(last_call(), "cuLaunchKernel 2147483647 1 1 256 1 1 0");
  const Status refused = driver_->launch(stream, nullptr, kMaxBlocks + 1, 256, nullptr);
  EXPECT_EQ(driver_->text_of(refused), "CUDA_ERROR_INVALID_VALUE: in words");
  EXPECT_EQ(driver_->text_of(kProductStatus + 13), "cublasStatus_t 13: in the words of cuBLASLt");
}

TEST_F(GpuDriverTest, EverythingIsGivenBack) {
  driver_.reset();
  const int before = cuda_.objects;
  const TestCublasLt& products = seen_by<TestCublasLt>(cublas_lt_file(), "test_cublas_lt");
  {
    runtime::Failure failure;
    const auto driver = open_gpu(choice(), failure);
    ASSERT_TRUE(driver) << failure.message;
    EXPECT_EQ(driver->device_name(), "GPU of the tests (sm_90)");
    CudaStream stream = nullptr;
    Event event = nullptr, timer = nullptr;
    Graph graph = nullptr;
    Module module = nullptr;
    PlannedCall product = nullptr;
    unsigned char *device = nullptr, *host = nullptr;
    ASSERT_EQ(driver->create_stream(Priority::high, &stream), kSuccess);
    ASSERT_EQ(driver->create_event(&event), kSuccess);
    ASSERT_EQ(driver->create_timer(&timer), kSuccess);
    ASSERT_EQ(driver->begin_capture(stream), kSuccess);
    ASSERT_EQ(driver->end_capture(stream, &graph), kSuccess);
    ASSERT_EQ(driver->load("image", &module), kSuccess);
    ASSERT_EQ(driver->allocate(256, &device), kSuccess);
    ASSERT_EQ(driver->allocate_host(256, &host), kSuccess);
    EXPECT_TRUE(std::all_of(host, host + 256, [](unsigned char byte) { return byte == 0; }));
    const PiperCallShape shape = {.kind = PIPER_CALL_GEMM,
                                  .number = 0,
                                  .of = {.gemm = {.batch = 1,
                                                  .m = 2,
                                                  .n = 2,
                                                  .k = 2,
                                                  .transpose_a = 0,
                                                  .transpose_b = 0,
                                                  .dtype = PIPER_F32}}};
    ASSERT_EQ(driver->plan_call(shape, PIPER_END_WRITES, 0, &product), kSuccess);
    EXPECT_GT(products.objects, 1);
  }
  EXPECT_EQ(cuda_.objects, before);
  EXPECT_EQ(products.objects, 0);
}

TEST_F(GpuDriverTest, DoctorSaysWhatTheDriverSaysOfLinks) {
  const backend::cuda::Devices devices = backend::cuda::find_devices();
  ASSERT_EQ(devices.gpus.size(), 2u);
  EXPECT_EQ(devices.gpus[1].bus, "0000:3b:00.0");
  ASSERT_EQ(devices.gpus[1].links.size(), 1u);
  EXPECT_TRUE(devices.gpus[1].links[0].to == 0 && devices.gpus[1].links[0].reaches &&
              devices.gpus[1].links[0].atomics);
  const source::MemoryFileSystem files;
  std::ostringstream out, err;
  tools::Console console{out, err, files, {}};
  const std::vector<std::string> words = {"doctor"};
  EXPECT_EQ(tools::run(words, console), 0);
  EXPECT_NE(
      out.str().find(
          "  GPU 0             GPU of the tests, sm_90, 80GiB, at 0000:19:00.0\n                    to GPU 1: direct access, with atomics, as NVLink has them, performance rank 0\n"),
      std::string::npos)
      << out.str();
}

// ---- products

class Products : public testing::Test {
 protected:
  Products() : seen_(seen_by<TestCublasLt>(cublas_lt_file(), "test_cublas_lt")) {
    std::string reason;
    seen_ = TestCublasLt();
    products_ = CublasLt::open(cublas_lt_file(), reason);
    EXPECT_TRUE(products_) << reason;
  }
  static constexpr PiperGemm kSmall = {
      .batch = 1, .m = 2, .n = 3, .k = 4, .transpose_a = 0, .transpose_b = 0, .dtype = PIPER_F32};
  Status plan(const PiperGemm& call, PlannedCall* request) {
    return products_->plan(call, PIPER_END_WRITES, 4096, request);
  }
  Status multiply(PlannedCall product) {
    std::vector<float> matrices(12, 1.0F);
    std::vector<unsigned char> workspace(4096);
    TestCall call(kSmall, matrices.data(), matrices.data(), matrices.data());
    call.set_workspace(workspace.data(), workspace.size());
    return products_->multiply(product, call.get(), nullptr);
  }

  TestCublasLt& seen_;
  std::unique_ptr<CublasLt> products_;
};

template <typename T>
std::vector<T> random_numbers(std::int64_t count, std::mt19937& random) {
  std::vector<T> numbers(static_cast<std::size_t>(count));
  // Quarters of small numbers: sums of their products are exact in any order.
  for (T& each : numbers)
    each = static_cast<T>(static_cast<float>(static_cast<int>(random() % 17) - 8) * 0.25F);
  return numbers;
}

template <typename T, typename Sum>
void compare_with_loops(CublasLt& products, std::uint32_t dtype, std::uint32_t end) {
  std::mt19937 random(3);
  for (const auto& [transpose_a, transpose_b] : {std::pair{0u, 0u}, {0u, 1u}, {1u, 0u}}) {
    const PiperGemm gemm = {.batch = 2,
                            .m = 3,
                            .n = 5,
                            .k = 4,
                            .transpose_a = transpose_a,
                            .transpose_b = transpose_b,
                            .dtype = dtype};
    SCOPED_TRACE(std::string(transpose_a != 0 ? "t" : "n") + (transpose_b != 0 ? "t" : "n") +
                 ", dtype " + std::to_string(dtype) + ", end " + std::to_string(end));
    const auto a = random_numbers<T>(gemm.batch * gemm.m * gemm.k, random),
               b = random_numbers<T>(gemm.batch * gemm.k * gemm.n, random);
    const auto before = random_numbers<Sum>(gemm.batch * gemm.m * gemm.n, random);
    PlannedCall product = nullptr;
    ASSERT_EQ(products.plan(gemm, end, 4096, &product), 0);
    std::vector<Sum> expected = before;
    runtime::LibraryReport report;
    const std::uint32_t end_of_loops = end == PIPER_END_ADDS ? PIPER_END_ADDS : PIPER_END_WRITES;
    ASSERT_EQ(call(runtime::builtin_library_calls(),
                   {gemm, a.data(), b.data(), expected.data(), end_of_loops}, &report),
              runtime::kLibraryDone);
    if (end == PIPER_END_ROUNDS) {
      std::vector<T> made(before.size()), rounded(before.size());
      std::transform(expected.begin(), expected.end(), rounded.begin(),
                     [](Sum sum) { return static_cast<T>(sum); });
      const TestCall rounding(gemm, a.data(), b.data(), made.data(), end);
      ASSERT_EQ(products.multiply(product, rounding.get(), nullptr), 0);
      EXPECT_TRUE(std::equal(made.begin(), made.end(), rounded.begin(), [](T x, T y) {
        return static_cast<float>(x) == static_cast<float>(y);
      }));
    } else {
      std::vector<Sum> made = before;
      const TestCall exact(gemm, a.data(), b.data(), made.data(), end);
      ASSERT_EQ(products.multiply(product, exact.get(), nullptr), 0);
      EXPECT_EQ(made, expected);
    }
  }
}

TEST_F(Products, AreThoseOfRows) {
  for (const std::uint32_t end : {PIPER_END_WRITES, PIPER_END_ADDS}) {
    compare_with_loops<double, double>(*products_, PIPER_F64, end);
    compare_with_loops<float, float>(*products_, PIPER_F32, end);
    compare_with_loops<piper_bf16, float>(*products_, PIPER_BF16, end);
  }
  compare_with_loops<piper_bf16, float>(*products_, PIPER_BF16, PIPER_END_ROUNDS);
}

TEST_F(Products, TheFirstThatFitsIsTaken) {
  seen_.whole = {{.number = 1, .state = 15},
                 {.number = 2, .workspace = 5000},
                 {.number = 3, .workspace = 4096},
                 {.number = 4}};
  PlannedCall product = nullptr;
  ASSERT_EQ(plan(kSmall, &product), 0);
  ASSERT_EQ(multiply(product), 0);
  EXPECT_EQ(seen_.ran, std::vector<std::uint64_t>({3}));
  EXPECT_EQ(seen_.reductions, std::vector<std::uint32_t>({0}));
}

TEST_F(Products, OneThatIsRefusedMakesRoomForTheNext) {
  seen_.whole = {{.number = 1, .runs = false}, {.number = 2, .runs = false}, {.number = 3}};
  PlannedCall product = nullptr;
  ASSERT_EQ(plan(kSmall, &product), 0);
  ASSERT_EQ(multiply(product), 0);
  seen_.whole.front().runs = true;
  ASSERT_EQ(multiply(product), 0);
  EXPECT_EQ(seen_.ran, std::vector<std::uint64_t>({3, 3})) << "an algorithm is chosen once";
  seen_.whole.back().runs = false;
  EXPECT_EQ(multiply(product), 15);
  EXPECT_EQ(products_->text_of(15),
            "cublasStatus_t 15: the functionality requested is not supported");
}

TEST_F(Products, SumsAreSplitWhereNothingElseIsOffered) {
  seen_.whole = {};
  seen_.split = {{.number = 9, .workspace = 64}};
  PlannedCall product = nullptr;
  ASSERT_EQ(plan(kSmall, &product), 0);
  ASSERT_EQ(multiply(product), 0);
  EXPECT_EQ(seen_.ran, std::vector<std::uint64_t>({9}));
  EXPECT_EQ(seen_.reductions, std::vector<std::uint32_t>({0, 2}));
  seen_.split = {};
  EXPECT_EQ(plan(kSmall, &product), 15);
}

}  // namespace
}  // namespace piper::test
