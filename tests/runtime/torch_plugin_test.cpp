// The plugin against our own loops: same values, results where they were asked for, nothing outside
// the planned workspace.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/library_calls.h"
#include "runtime/device/product_choice.h"
#include "runtime/kernel_math.h"
#include "tests/runtime/counting_new.h"
#include "tests/runtime/sample_jobs.h"
#include "tests/support/test_call.h"

namespace piper::runtime {
namespace {

using test::call;
using test::TestCall;

const LibraryCalls& torch() {
  static const LibraryCalls* calls = [] {
    static LibrarySwitch library{Options{}};
    Failure failure;
    const LibraryCalls* found = library.get(failure);
    EXPECT_TRUE(found) << describe(failure);
    if (found) found->begin_thread(1);
    return found;
  }();
  return *calls;
}

template <typename T>
std::vector<T> numbers(std::int64_t count, std::uint64_t stream) {
  const piper_random_key key = piper_stream_key(7, 1, 0, stream, 0);
  std::vector<T> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(piper_random_normal(key, i));
  return out;
}

template <typename T>
double difference(const std::vector<T>& a, const std::vector<T>& b) {
  double error = 0, size = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(error / size);
}

template <typename T>
// Values rounded to bf16 may fall to either side.
constexpr double kBound = sizeof(T) == 8   ? 1e-13
                          : sizeof(T) == 4 ? 1e-5
                                           : 0x1p-8;

/// `Sum`: of the result.
template <typename T, typename Sum = T>
void check_gemm() {
  for (const auto& [batch, m, n, k] : {std::tuple{1, 1, 1, 1},
                                       {1, 5, 7, 3},
                                       {1, 64, 48, 130},
                                       {3, 9, 4, 6},
                                       {2, 33, 65, 20},
                                       {1, 160, 130, 132},
                                       {3, 96, 128, 96},
                                       {1, 600, 40, 20}}) {
    for (std::uint32_t form = 0; form < 8; ++form) {
      const PiperGemm gemm{.batch = batch,
                           .m = m,
                           .n = n,
                           .k = k,
                           .transpose_a = form & 1,
                           .transpose_b = form >> 1 & 1,
                           .dtype = dtype_of<T>()};
      const auto a = numbers<T>(batch * m * k, 1), b = numbers<T>(batch * k * n, 2);
      auto c = numbers<Sum>(batch * m * n, 3);
      auto expected = c, again = c;
      const std::uint32_t end = form >> 2 != 0 ? PIPER_END_ADDS : PIPER_END_WRITES;
      LibraryReport report;
      ASSERT_EQ(call(torch(), {gemm, a.data(), b.data(), c.data(), end}, &report), kLibraryDone)
          << report.error;
      ASSERT_EQ(call(torch(), {gemm, a.data(), b.data(), again.data(), end}, &report),
                kLibraryDone);
      ASSERT_EQ(
          call(builtin_library_calls(), {gemm, a.data(), b.data(), expected.data(), end}, &report),
          kLibraryDone);
      EXPECT_EQ(c, again);
      EXPECT_LT(difference(c, expected), kBound<Sum>)
          << batch << ' ' << m << ' ' << n << ' ' << k << " form " << form;
    }
  }
}

// With either library. The test's condition for oneDNN is LibTorch's own.
TEST(TorchPlugin, MultipliesMatrices) {
  EXPECT_EQ(torch().choose(Math::onednn) == 0, this_processor().avx512);
  for (const Math math : {Math::onednn, Math::mkl, Math::automatic}) {
    if (torch().choose(math) != 0) continue;
    check_gemm<float>();
    check_gemm<double>();
    check_gemm<piper_bf16, float>();
  }
}

TEST(TorchPlugin, SaysWhenTheProcessorLacksWhatWasAskedFor) {
  Options options;
  options.math = Math::onednn;
  LibrarySwitch library(options);
  Failure failure;
  const bool found = library.get(failure) != nullptr;
  torch().choose(Math::automatic);
  ASSERT_EQ(found, this_processor().avx512);
  EXPECT_EQ(
      failure.message,
      found
          ? ""
          : "the environment variable `PIPER_MATH` is `onednn`, which wants a processor with AVX-512");
}

TEST(ProductChoice, FollowsTheProcessorAndTheShape) {
  constexpr Processor kIntel{.intel = true, .avx512 = true}, kOther{.intel = false, .avx512 = true},
      kPlain{};
  constexpr ProductLibrary mkl = ProductLibrary::mkl, onednn = ProductLibrary::onednn;
  const struct {
    std::int64_t batch, m, n, k;
    PiperDType dtype;
    ProductLibrary intel, other, plain;
  } rows[] = {
      {1, 512, 1024, 256, PIPER_F32, mkl, onednn, mkl},
      {1, 128, 128, 128, PIPER_F32, mkl, onednn, mkl},
      {8, 128, 128, 32, PIPER_F32, mkl, onednn, mkl},
      {1, 64, 64, 64, PIPER_F32, mkl, mkl, mkl},     // quicker done than begun
      {1, 4096, 4096, 1, PIPER_F32, mkl, mkl, mkl},  // thin
      {4096, 16, 16, 16, PIPER_F32, mkl, mkl, mkl},  // many small ones
      {1, 512, 1024, 256, PIPER_F64, mkl, mkl, mkl},
  };
  for (const auto& row : rows) {
    for (std::uint32_t form = 0; form < 4; ++form) {
      const PiperGemm call{.batch = row.batch,
                           .m = row.m,
                           .n = row.n,
                           .k = row.k,
                           .transpose_a = form & 1,
                           .transpose_b = form >> 1,
                           .dtype = row.dtype};
      EXPECT_EQ(choose_product(call, Math::automatic, kIntel), row.intel) << row.m;
      EXPECT_EQ(choose_product(call, Math::automatic, kOther), row.other) << row.m;
      EXPECT_EQ(choose_product(call, Math::automatic, kPlain), row.plain) << row.m;
      EXPECT_EQ(choose_product(call, Math::mkl, kOther), mkl);
      EXPECT_EQ(choose_product(call, Math::onednn, kIntel), row.dtype == PIPER_F32 ? onednn : mkl);
    }
  }
}

TEST(ProductChoice, TheRuleInWordsTellsDifferentChoicesApart) {
  constexpr Processor kIntel{.intel = true, .avx512 = true}, kOther{.intel = false, .avx512 = true},
      kPlain{};
  const auto words = [](Math math, const Processor& processor) {
    return std::string(rule_of_products(math, processor));
  };
  for (const Processor& processor : {kIntel, kPlain})
    EXPECT_EQ(words(Math::automatic, processor), words(Math::mkl, processor));
  const std::set<std::string> different = {words(Math::automatic, kOther), words(Math::mkl, kOther),
                                           words(Math::onednn, kOther),
                                           words(Math::builtin, kOther)};
  EXPECT_EQ(different.size(), 4u);
}

TEST(ProductChoice, GivesMklTheRowsThatItsCacheHolds) {
  const struct {
    std::int64_t batch, m, n;
    std::uint32_t transpose_a;
    PiperDType dtype;
    std::int64_t rows;
  } cases[] = {
      {1, 4096, 256, 0, PIPER_F32, 256},   {1, 4096, 1024, 0, PIPER_F32, 256},
      {1, 100, 256, 0, PIPER_F32, 100},    {1, 4096, 512, 0, PIPER_F64, 256},
      {1, 4096, 1025, 0, PIPER_F32, 4096}, {1, 4096, 513, 0, PIPER_F64, 4096},  // rows too long
      {2, 4096, 256, 0, PIPER_F32, 4096},  {1, 4096, 256, 1, PIPER_F32, 4096},
  };
  for (const auto& row : cases) {
    const PiperGemm call{.batch = row.batch,
                         .m = row.m,
                         .n = row.n,
                         .k = 256,
                         .transpose_a = row.transpose_a,
                         .transpose_b = 0,
                         .dtype = row.dtype};
    EXPECT_EQ(rows_per_call(call, 1), row.rows) << row.n;
    EXPECT_EQ(rows_per_call(call, 2), row.m) << row.n;
  }
}

TEST(BuiltinCalls, MultiplyMatricesAsTheDefinitionSays) {
  const std::int64_t batch = 2, m = 5, n = 70, k = 67;
  for (std::uint32_t form = 0; form < 4; ++form) {
    const PiperGemm gemm{.batch = batch,
                         .m = m,
                         .n = n,
                         .k = k,
                         .transpose_a = form & 1,
                         .transpose_b = form >> 1,
                         .dtype = PIPER_F64};
    const auto a = numbers<double>(batch * m * k, 1), b = numbers<double>(batch * k * n, 2);
    auto c = numbers<double>(batch * m * n, 3);
    const auto before = c;
    LibraryReport report;
    ASSERT_EQ(call(builtin_library_calls(), {gemm, a.data(), b.data(), c.data(), PIPER_END_ADDS},
                   &report),
              kLibraryDone);
    for (std::int64_t at = 0; at < batch * m * n; ++at) {
      const std::int64_t q = at / (m * n), i = at / n % m, j = at % n;
      double sum = before[static_cast<std::size_t>(at)];
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a[static_cast<std::size_t>(q * m * k + (form & 1 ? l * m + i : i * k + l))] *
               b[static_cast<std::size_t>(q * k * n + (form >> 1 ? j * k + l : l * n + j))];
      }
      ASSERT_NEAR(c[static_cast<std::size_t>(at)], sum, 1e-12);
    }
  }
}

struct AttendCase {
  const char* name;
  PiperAttend call;
};

const AttendCase kCases[] = {
    {"plain",
     {.batch = 2,
      .seq = 9,
      .keys = 9,
      .heads = 3,
      .kv_heads = 3,
      .width = 8,
      .value_width = 8,
      .scale = 0.35,
      .causal = 0,
      .dtype = PIPER_F32,
      .form = PIPER_ATTEND_BUILTIN}},
    {"causal",
     {.batch = 2,
      .seq = 130,
      .keys = 130,
      .heads = 2,
      .kv_heads = 2,
      .width = 16,
      .value_width = 16,
      .scale = 0.25,
      .causal = 1,
      .dtype = PIPER_F32,
      .form = PIPER_ATTEND_BUILTIN}},
    {"cross",
     {.batch = 1,
      .seq = 5,
      .keys = 40,
      .heads = 2,
      .kv_heads = 2,
      .width = 4,
      .value_width = 4,
      .scale = 0.5,
      .causal = 0,
      .dtype = PIPER_F32,
      .form = PIPER_ATTEND_BUILTIN}},
    {"grouped",
     {.batch = 2,
      .seq = 17,
      .keys = 17,
      .heads = 6,
      .kv_heads = 2,
      .width = 8,
      .value_width = 8,
      .scale = 0.3,
      .causal = 1,
      .dtype = PIPER_F32,
      .form = PIPER_ATTEND_BUILTIN}},
    {"wide values",
     {.batch = 1,
      .seq = 6,
      .keys = 6,
      .heads = 2,
      .kv_heads = 1,
      .width = 4,
      .value_width = 12,
      .scale = 0.5,
      .causal = 1,
      .dtype = PIPER_F32,
      .form = PIPER_ATTEND_BUILTIN}},
};

constexpr std::size_t kCanary = 64;

template <typename T, typename Sum = T>
void check_attention(const AttendCase& test) {
  SCOPED_TRACE(test.name);
  PiperAttend attend = test.call;
  attend.dtype = dtype_of<T>();
  const std::int64_t queries = attend.batch * attend.seq * attend.heads,
                     keys = attend.batch * attend.keys * attend.kv_heads;
  const auto q = numbers<T>(queries * attend.width, 1), k = numbers<T>(keys * attend.width, 2),
             v = numbers<T>(keys * attend.value_width, 3);
  const auto dout = numbers<T>(queries * attend.value_width, 4);
  std::vector<unsigned char> workspace(piper_attend_workspace(&attend) + kCanary, 0xAB);
  const auto run = [&](const LibraryCalls& library) {
    std::vector<std::vector<T>> results = {
        std::vector<T>(static_cast<std::size_t>(queries * attend.value_width)),
        std::vector<T>(q.size()), std::vector<T>(k.size()), std::vector<T>(v.size())};
    std::vector<Sum> lse(static_cast<std::size_t>(queries));
    LibraryReport report;
    const std::uint64_t bytes = workspace.size() - kCanary;
    EXPECT_EQ(call(library,
                   {attend,
                    {q.data(), k.data(), v.data()},
                    {results[0].data(), lse.data()},
                    workspace.data(),
                    bytes},
                   &report),
              kLibraryDone)
        << report.error << ' ' << report.value;
    EXPECT_EQ(call(library,
                   {attend,
                    {q.data(), k.data(), v.data(), results[0].data(), lse.data(), dout.data()},
                    {results[1].data(), results[2].data(), results[3].data()},
                    workspace.data(),
                    bytes},
                   &report),
              kLibraryDone)
        << report.error << ' ' << report.value;
    for (std::size_t i = workspace.size() - kCanary; i < workspace.size(); ++i)
      EXPECT_EQ(workspace[i], 0xAB);
    return std::pair(results, lse);
  };
  const auto ours = run(builtin_library_calls()), theirs = run(torch()), again = run(torch());
  for (std::size_t i = 0; i < ours.first.size(); ++i) {
    EXPECT_LT(difference(theirs.first[i], ours.first[i]), kBound<T>) << "result " << i;
    EXPECT_EQ(theirs.first[i], again.first[i]);
  }
  EXPECT_LT(difference(theirs.second, ours.second), kBound<Sum>);
  EXPECT_EQ(theirs.second, again.second);
  std::vector<T> out(static_cast<std::size_t>(queries * attend.value_width));
  std::vector<Sum> lse(static_cast<std::size_t>(queries));
  LibraryReport report;
  EXPECT_EQ(
      call(torch(),
           {attend, {q.data(), k.data(), v.data()}, {out.data(), lse.data()}, workspace.data(), 16},
           &report),
      kLibraryOverrun);
  EXPECT_GT(report.value, 0);
}

TEST(TorchPlugin, Attends) {
  for (const AttendCase& test : kCases) {
    check_attention<float>(test);
    check_attention<double>(test);
    check_attention<piper_bf16, float>(test);
  }
}

TEST(BuiltinCalls, GradientsOfAttentionAreDifferences) {
  const PiperAttend attend{.batch = 1,
                           .seq = 4,
                           .keys = 4,
                           .heads = 4,
                           .kv_heads = 2,
                           .width = 3,
                           .value_width = 2,
                           .scale = 0.6,
                           .causal = 1,
                           .dtype = PIPER_F64,
                           .form = PIPER_ATTEND_BUILTIN};
  std::vector<std::vector<double>> in = {numbers<double>(48, 1), numbers<double>(24, 2),
                                         numbers<double>(16, 3)};
  const auto dout = numbers<double>(32, 4);
  std::vector<double> out(32), lse(16), workspace(64);
  LibraryReport report;
  const auto loss = [&] {
    EXPECT_EQ(call(builtin_library_calls(),
                   {attend,
                    {in[0].data(), in[1].data(), in[2].data()},
                    {out.data(), lse.data()},
                    workspace.data(),
                    512},
                   &report),
              kLibraryDone);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  };
  loss();
  std::vector<std::vector<double>> grads = {std::vector<double>(48), std::vector<double>(24),
                                            std::vector<double>(16)};
  const auto kept_out = out, kept_lse = lse;
  ASSERT_EQ(call(builtin_library_calls(),
                 {attend,
                  {in[0].data(), in[1].data(), in[2].data(), kept_out.data(), kept_lse.data(),
                   dout.data()},
                  {grads[0].data(), grads[1].data(), grads[2].data()},
                  workspace.data(),
                  512},
                 &report),
            kLibraryDone);
  for (std::size_t t = 0; t < in.size(); ++t) {
    for (std::size_t i = 0; i < in[t].size(); ++i) {
      const double kept = in[t][i], h = 1e-5;
      in[t][i] = kept + h;
      const double up = loss();
      in[t][i] = kept - h;
      const double down = loss();
      in[t][i] = kept;
      EXPECT_NEAR(grads[t][i], (up - down) / (2 * h), 1e-8) << t << ' ' << i;
    }
  }
}

TEST(TorchPlugin, AProductInSteadyStateAllocatesNothing) {
  std::vector<float> a(64 * 64, 1.0f), b(64 * 64, 1.0f), c(64 * 64);
  LibraryReport report;
  std::uint64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    if (i == 10) before = allocations();
    // As in a program, each shape has a number of its own.
    for (std::uint32_t form = 0; form < 8; ++form) {
      const PiperGemm gemm{.batch = 1,
                           .m = 64,
                           .n = 32,
                           .k = 48,
                           .transpose_a = form & 1,
                           .transpose_b = form >> 1 & 1,
                           .dtype = PIPER_F32};
      ASSERT_EQ(call(torch(), {gemm, a.data(), b.data(), c.data(), form >> 2, form & 3}, &report),
                kLibraryDone);
    }
  }
  EXPECT_EQ(allocations() - before, 0u);
  // The count sees LibTorch: a new shape makes views.
  const PiperGemm other{
      .batch = 1, .m = 3, .n = 5, .k = 7, .transpose_a = 0, .transpose_b = 0, .dtype = PIPER_F32};
  ASSERT_EQ(call(torch(), {other, a.data(), b.data(), c.data(), PIPER_END_WRITES, 4}, &report),
            kLibraryDone);
  EXPECT_GT(allocations() - before, 0u);
}

// The numbers of another program follow: its shapes are other ones.
TEST(TorchPlugin, ANumberMayMeanAnotherShape) {
  const std::vector<float> a(600 * 48, 0.5f), b(48 * 48, 2.0f);
  for (const std::int64_t m : {600, 5, 300, 600}) {
    std::vector<float> c(static_cast<std::size_t>(m * 48));
    const PiperGemm gemm{.batch = 1,
                         .m = m,
                         .n = 48,
                         .k = 48,
                         .transpose_a = 0,
                         .transpose_b = 0,
                         .dtype = PIPER_F32};
    LibraryReport report;
    ASSERT_EQ(call(torch(), {gemm, a.data(), b.data(), c.data(), PIPER_END_WRITES, 7}, &report),
              kLibraryDone);
    EXPECT_EQ(c, std::vector<float>(c.size(), 48.0f)) << m;
  }
}

// LibTorch's threads read it when it is loaded; an existing setting by the user has priority.
TEST(TorchPlugin, ThreadsThatHelpLookOnlyShortlyForWork) {
  const std::string before = std::getenv("GOMP_SPINCOUNT") ? std::getenv("GOMP_SPINCOUNT") : "";
  for (const auto& [entry, expected] : {std::pair{"PIPER_THREADS=2", "1000"},
                                        {"OMP_WAIT_POLICY=active", ""},
                                        {"GOMP_SPINCOUNT=7", ""},
                                        {"PIPER_MATH=builtin", ""}}) {
    unsetenv("GOMP_SPINCOUNT");
    Options options;
    const char* const environment[] = {entry, nullptr};
    ASSERT_FALSE(options.read_environment(environment));
    const LibrarySwitch library(options);
    EXPECT_EQ(std::string(std::getenv("GOMP_SPINCOUNT") ? std::getenv("GOMP_SPINCOUNT") : ""),
              expected)
        << entry;
  }
  if (!before.empty()) setenv("GOMP_SPINCOUNT", before.c_str(), 1);
}

TEST(TorchPlugin, RefusesWithoutAnException) {
  const PiperGemm gemm{
      .batch = 1, .m = 1, .n = 1, .k = 1, .transpose_a = 0, .transpose_b = 0, .dtype = PIPER_I64};
  LibraryReport report;
  EXPECT_EQ(call(torch(), {gemm, nullptr, nullptr, nullptr}, &report), kLibraryError);
  EXPECT_STREQ(report.error, "LibTorch multiplies f32, f64 and bf16");
  const PiperGemm negative{
      .batch = 1, .m = -4, .n = 1, .k = 1, .transpose_a = 0, .transpose_b = 0, .dtype = PIPER_F32};
  float x = 0;
  EXPECT_EQ(call(torch(), {negative, &x, &x, &x}, &report), kLibraryError);
  EXPECT_STREQ(report.error, "LibTorch refused a matrix product");
}

// Both libraries of CPUs: only GPUs round, and a later table may have calls that they lack.
TEST(TorchPlugin, LibrariesOfCpusRefuseOtherEndsAndKinds) {
  for (const LibraryCalls* const library : {&torch(), &builtin_library_calls()}) {
    const PiperGemm gemm{.batch = 1,
                         .m = 1,
                         .n = 1,
                         .k = 1,
                         .transpose_a = 0,
                         .transpose_b = 0,
                         .dtype = PIPER_BF16};
    LibraryReport report;
    EXPECT_EQ(call(*library, {gemm, nullptr, nullptr, nullptr, PIPER_END_ROUNDS}, &report),
              kLibraryError);
    EXPECT_STREQ(report.error, "products on a CPU write or add their sums");
    const PiperCallShape shape{.kind = PIPER_CALL_KINDS, .number = 0, .of = {.gemm = gemm}};
    const PiperCall unknown{.shape = &shape,
                            .in = nullptr,
                            .out = nullptr,
                            .workspace = nullptr,
                            .workspace_bytes = 0,
                            .end = PIPER_END_WRITES};
    EXPECT_EQ(library->call(&unknown, &report), kLibraryError);
    EXPECT_STREQ(report.error, "the library does not have this call");
  }
}

TEST(TorchPlugin, ServesDeviceThreads) {
  HandJob job(4);
  for (std::uint32_t r = 0; r < 4; ++r) {
    HandProgram& program = job.rank(r);
    constexpr std::int64_t n = 64;
    const std::uint64_t a = program.allocate<float>(n * n), c = program.allocate<float>(n * n);
    program.compute("F", {}, [=](Step& step) {
      std::fill_n(step.at<float>(a), n * n, 1.0f);
      const PiperGemm gemm{.batch = 1,
                           .m = n,
                           .n = n,
                           .k = n,
                           .transpose_a = 0,
                           .transpose_b = 1,
                           .dtype = PIPER_F32};
      const TestCall product(gemm, step.at<float>(a), step.at<float>(a), step.at<float>(c));
      const PiperCall request = product.get();
      if (step.api->call(step.rank, step.action, &request)) return 1;
      return step.at<float>(c)[n * n - 1] == 64.0f ? 0 : 2;
    });
  }
  const RunResult result = create(job.finish())->run(Phase::training, 50);
  EXPECT_EQ(result.ended, Ended::finished) << (result.failure ? describe(*result.failure) : "");
}

}  // namespace
}  // namespace piper::runtime
