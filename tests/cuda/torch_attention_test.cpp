// The plugin's attention on a GPU, with a test libtorch_cuda.so that follows LibTorch's order of
// allocations: results in place, workspaces as planned, streams, refusals. If the real one is
// present: it opens without a driver and has the kernels.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "backend/cuda/attention.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/torch_attention.h"
#include "runtime/device/library_calls.h"
#include "runtime/kernel_math.h"
#include "tests/cuda/test_torch_cuda.h"
#include "tests/support/test_call.h"

namespace piper::test {
namespace {

using namespace runtime::cuda;
using backend::cuda::attention_form;
using backend::cuda::attention_workspace;

std::string beside(const char* name) {
  return (std::filesystem::canonical("/proc/self/exe").parent_path() / name).string();
}
TorchChoice choice(const std::string& library, const std::string& version) {
  return {.plugin = beside("piper_torch_plugin.so"),
          .library = library,
          .version = version,
          .no_library = {},
          .gpu = 0};
}
const std::string& test_library() {
  static const std::string path = beside("test_torch_cuda/libtorch_cuda.so");
  return path;
}
const TorchAttention* torch() {
  static std::string reason;
  static const TorchAttention* const opened =
      open_torch_attention(choice(test_library(), "2.11.0+cu130"), true, reason);
  EXPECT_NE(opened, nullptr) << reason;
  return opened;
}

/// Operands, results and a workspace with canaries on both sides.
struct Case {
  Case(std::int64_t seq, std::int64_t keys, std::int64_t heads, std::int64_t kv_heads,
       std::int64_t width, bool causal, std::uint32_t dtype) {
    call = {.batch = 2,
            .seq = seq,
            .keys = keys,
            .heads = heads,
            .kv_heads = kv_heads,
            .width = width,
            .value_width = width,
            .scale = 0.3,
            .causal = causal ? 1u : 0u,
            .dtype = dtype,
            .form = 0};
    call.form = attention_form(call);
    const std::size_t element = dtype == PIPER_BF16 ? 2 : 4;
    const auto of = [&](std::int64_t positions, std::int64_t head_count) {
      return static_cast<std::size_t>(2 * positions * head_count * width) * element;
    };
    for (auto* buffer : {&q, &out, &dout, &dq}) buffer->assign(of(seq, heads), 0);
    for (auto* buffer : {&k, &v, &dk, &dv}) buffer->assign(of(keys, kv_heads), 0);
    lse.assign(static_cast<std::size_t>(2 * heads * seq) * 4, 0);
    std::mt19937 random(7);
    for (auto* buffer : {&q, &k, &v, &dout}) fill(*buffer, random, dtype);
  }
  static void fill(std::vector<unsigned char>& buffer, std::mt19937& random, std::uint32_t dtype) {
    std::uniform_real_distribution<float> number(-1, 1);
    if (dtype == PIPER_F32) {
      for (std::size_t i = 0; i < buffer.size() / 4; ++i)
        reinterpret_cast<float*>(buffer.data())[i] = number(random);
    } else {
      for (std::size_t i = 0; i < buffer.size() / 2; ++i)
        reinterpret_cast<piper_bf16*>(buffer.data())[i] = number(random);
    }
  }

  static constexpr std::size_t kCanary = 512;
  int run(bool gradient, std::int64_t fewer = 0, void* stream = nullptr) {
    const std::size_t bytes = attention_workspace(call, gradient) - static_cast<std::size_t>(fewer);
    std::vector<unsigned char> memory(bytes + 2 * kCanary + 128, 0xC3);
    // As in an arena: a multiple of 64 and no more.
    unsigned char* at = memory.data() + kCanary;
    at += 64 - reinterpret_cast<std::uintptr_t>(at) % 64;
    const TestCall wanted = call_on(*this, gradient, at, bytes);
    const PiperCall request = wanted.get();
    const int status = torch()->call(stream, &request);
    for (std::size_t i = 0; i < kCanary; ++i) {
      EXPECT_EQ(*(at - 1 - i), 0xC3) << i << " before the workspace";
      EXPECT_EQ(at[bytes + i], 0xC3) << i << " behind the workspace";
    }
    return status;
  }
  /// The call, or its gradient, on the buffers of a case.
  static TestCall call_on(Case& on, bool gradient, void* workspace, std::uint64_t bytes) {
    if (!gradient)
      return {on.call,
              {on.q.data(), on.k.data(), on.v.data()},
              {on.out.data(), on.lse.data()},
              workspace,
              bytes};
    return {on.call,
            {on.q.data(), on.k.data(), on.v.data(), on.out.data(), on.lse.data(), on.dout.data()},
            {on.dq.data(), on.dk.data(), on.dv.data()},
            workspace,
            bytes};
  }
  /// The results of the runtime's own loops.
  Case expected() const {
    Case other = *this;
    std::vector<unsigned char> own(piper_attend_workspace(&call));
    runtime::LibraryReport report;
    const runtime::LibraryCalls& loops = runtime::builtin_library_calls();
    for (const bool gradient : {false, true})
      EXPECT_EQ(test::call(loops, call_on(other, gradient, own.data(), own.size()), &report), 0);
    return other;
  }

  PiperAttend call{};
  std::vector<unsigned char> q, k, v, out, lse, dout, dq, dk, dv;
};

std::vector<Case> cases() {
  return {{32, 32, 2, 2, 8, true, PIPER_F32},   {64, 96, 3, 3, 36, true, PIPER_F32},
          {96, 40, 1, 1, 64, false, PIPER_F32}, {16, 16, 2, 2, 8, true, PIPER_BF16},
          {50, 70, 4, 2, 40, true, PIPER_BF16}, {130, 33, 4, 1, 64, false, PIPER_BF16},
          {1, 20, 2, 2, 16, true, PIPER_BF16}};
}

TEST(TorchAttention, ResultsLieInPlaceAndWorkspacesAreThePlans) {
  for (Case& each : cases()) {
    SCOPED_TRACE(std::to_string(each.call.seq) + " x " + std::to_string(each.call.keys) +
                 ", dtype " + std::to_string(each.call.dtype));
    ASSERT_NE(each.call.form, static_cast<std::uint32_t>(PIPER_ATTEND_BUILTIN));
    const Case expected = each.expected();
    ASSERT_EQ(each.run(false), kSuccess) << torch()->error();
    ASSERT_EQ(each.run(true), kSuccess) << torch()->error();
    EXPECT_EQ(each.out, expected.out);
    EXPECT_EQ(each.lse, expected.lse);
    EXPECT_EQ(each.dq, expected.dq);
    EXPECT_EQ(each.dk, expected.dk);
    EXPECT_EQ(each.dv, expected.dv);
  }
}

TEST(TorchAttention, MoreThanPlannedIsARefusalThatSaysHowMuch) {
  Case each(32, 32, 2, 2, 8, true, PIPER_F32);
  const Case before = each;
  // All but the last piece fits: the request is reported in bytes, nothing outside the workspace is
  // written, and the next call works as usual.
  ASSERT_EQ(each.run(true, 80000), kAttentionOverrun);
  EXPECT_NE(std::string(torch()->error()).find("bytes more than its planned workspace"),
            std::string::npos)
      << torch()->error();
  each = before;
  ASSERT_EQ(each.run(false), kSuccess) << torch()->error();
  ASSERT_EQ(each.run(true), kSuccess) << torch()->error();
  EXPECT_EQ(each.dq, before.expected().dq);
}

TEST(TorchAttention, StreamAndOrderOfAdditionsAreSaid) {
  ASSERT_NE(torch(), nullptr);
  void* const library = dlopen(test_library().c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto calls =
      reinterpret_cast<const TorchCudaCalls* (*)()>(dlsym(library, "test_torch_cuda_calls"));
  ASSERT_NE(calls, nullptr);
  Case each(16, 16, 2, 2, 8, true, PIPER_BF16);
  ASSERT_EQ(each.run(false, 0, reinterpret_cast<void*>(std::uintptr_t{0x7f0040})), kSuccess)
      << torch()->error();
  EXPECT_EQ(calls()->stream, 0x7f0040);
  EXPECT_TRUE(calls()->deterministic);
  Case wide(32, 32, 2, 2, 8, true, PIPER_F32);
  ASSERT_EQ(wide.run(false), kSuccess) << torch()->error();
  ASSERT_EQ(wide.run(true), kSuccess) << torch()->error();
  EXPECT_EQ(calls()->splits, 1);
  // Without that request flash's gradient needs less, the efficient one may split its keys, and both
  // are the same functions.
  std::string reason;
  ASSERT_NE(open_torch_attention(choice(test_library(), "2.11.0+cu130"), false, reason), nullptr)
      << reason;
  ASSERT_EQ(each.run(true), kSuccess) << torch()->error();
  EXPECT_FALSE(calls()->deterministic);
  EXPECT_EQ(each.dq, each.expected().dq);
  ASSERT_EQ(wide.run(true), kSuccess) << torch()->error();
  EXPECT_EQ(calls()->splits, 0);
  EXPECT_EQ(wide.dq, wide.expected().dq);
  ASSERT_NE(open_torch_attention(choice(test_library(), "2.11.0+cu130"), true, reason), nullptr)
      << reason;
}

TEST(TorchAttention, ReportsMissingLibraries) {
  const auto refused = [](const TorchChoice& choice) {
    std::string reason;
    EXPECT_EQ(open_torch_attention(choice, true, reason), nullptr);
    return reason;
  };
  EXPECT_EQ(refused({.plugin = beside("piper_torch_plugin.so"),
                     .library = {},
                     .version = {},
                     .no_library = "there is no `libtorch_cuda.so` in `/nowhere`",
                     .gpu = 0}),
            "there is no `libtorch_cuda.so` in `/nowhere`");
  EXPECT_NE(refused({.plugin = "/dev/null/piper_torch_plugin.so",
                     .library = test_library(),
                     .version = "2.11.0",
                     .no_library = {},
                     .gpu = 0})
                .find("`/dev/null/piper_torch_plugin.so` cannot be opened"),
            std::string::npos);
}

/// In a process in which none is open yet.
void open_and_say(const std::string& library, const std::string& version) {
  std::string reason;
  const bool opened = open_torch_attention(choice(library, version), true, reason) != nullptr;
  std::fprintf(stderr, "%s\n", opened ? "opened" : reason.c_str());
  _exit(opened ? 0 : 1);
}

TEST(TorchAttentionDeathTest, AnotherVersionIsRefused) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(open_and_say(test_library(), "2.10.0+cu128"), testing::ExitedWithCode(1),
              "is of PyTorch 2.10.0.cu128, and piper is built for 2.11.0");
  EXPECT_EXIT(open_and_say(test_library(), ""), testing::ExitedWithCode(1),
              "of PyTorch an unknown version");
  EXPECT_EXIT(open_and_say("/dev/null/libtorch_cuda.so", "2.11.0"), testing::ExitedWithCode(1),
              "/dev/null/libtorch_cuda.so. cannot be opened");
}

TEST(TorchAttentionDeathTest, TheRealOneOpensWithoutADriver) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  if (!std::filesystem::exists(PIPER_TORCH_CUDA))
    GTEST_SKIP() << "no " << PIPER_TORCH_CUDA
                 << ": configure with -DPIPER_TORCH_CUDA=.../torch/lib/libtorch_cuda.so";
  EXPECT_EXIT(open_and_say(PIPER_TORCH_CUDA, "2.11.0+cu130"), testing::ExitedWithCode(0), "opened");
}

}  // namespace
}  // namespace piper::test
