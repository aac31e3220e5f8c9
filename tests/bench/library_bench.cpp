// What a matrix product and an attention cost through the plugin, beside the arithmetic itself.
#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/device/library_calls.h"

namespace piper::runtime {
namespace {

const LibraryCalls* torch() {
  static LibrarySwitch library{Options{}};
  static const LibraryCalls* const calls = [] {
    Failure failure;
    const LibraryCalls* found = library.get(failure);
    if (found) found->begin_thread(1);
    return found;
  }();
  return calls;
}

void BM_Gemm(benchmark::State& state) {
  if (!torch()) return state.SkipWithError("no plugin");
  const PiperGemm call{.batch = 1, .m = state.range(0), .n = state.range(1), .k = state.range(2), .transpose_a = 0, .transpose_b = 0, .dtype = PIPER_F32};
  std::vector<float> a(static_cast<std::size_t>(call.m * call.k), 1.0f), b(static_cast<std::size_t>(call.k * call.n), 1.0f), c(static_cast<std::size_t>(call.m * call.n));
  LibraryReport report;
  for (auto _ : state) torch()->gemm(&call, a.data(), b.data(), c.data(), static_cast<std::uint32_t>(state.range(3)), &report);
  state.counters["flops"] = benchmark::Counter(2.0 * static_cast<double>(call.m * call.n * call.k * state.iterations()), benchmark::Counter::kIsRate);
}

template <typename T>
void BM_Attend(benchmark::State& state) {
  if (!torch()) return state.SkipWithError("no plugin");
  const PiperAttend call{.batch = state.range(0), .seq = 128, .keys = 128, .heads = 8, .kv_heads = 8, .width = 32, .value_width = 32, .scale = 0.18,
                         .causal = 1, .dtype = sizeof(T) == 8 ? PIPER_F64 : PIPER_F32};
  const std::size_t elements = static_cast<std::size_t>(call.batch) * 128 * 8 * 32;
  std::vector<T> q(elements, T(0.1)), k(elements, T(0.2)), v(elements, T(0.3)), out(elements), lse(elements), dq(elements), dk(elements), dv(elements);
  std::vector<unsigned char> workspace(piper_attend_workspace(&call));
  LibraryReport report;
  for (auto _ : state) {
    torch()->attend(&call, q.data(), k.data(), v.data(), out.data(), lse.data(), workspace.data(), workspace.size(), &report);
    torch()->attend_grad(&call, q.data(), k.data(), v.data(), out.data(), lse.data(), q.data(), dq.data(), dk.data(), dv.data(), workspace.data(),
                         workspace.size(), &report);
  }
}

BENCHMARK(BM_Gemm)->Args({8, 8, 8, 0})->Args({8, 8, 8, 1})->Args({512, 1024, 256, 0})->Args({512, 1024, 256, 1})->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Attend<float>)->Arg(1)->Arg(4)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Attend<double>)->Arg(4)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace piper::runtime
