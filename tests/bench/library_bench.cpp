// The cost of a matrix product and an attention through the plugin, beside the arithmetic itself.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/device/library_calls.h"
#include "runtime/device/product_choice.h"
#include "tests/support/test_call.h"

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

enum Form : std::int64_t { nn, nt, tn, tn_adding };
constexpr const char* kFormNames[] = {"nn", "nt", "tn", "tn +="};

void BM_Gemm(benchmark::State& state, Math math) {
  if (!torch()) return state.SkipWithError("no plugin");
  if (torch()->choose(math) != 0)
    return state.SkipWithError("LibTorch does not multiply with oneDNN on this processor");
  const std::int64_t form = state.range(4);
  const PiperGemm call{.batch = state.range(0),
                       .m = state.range(1),
                       .n = state.range(2),
                       .k = state.range(3),
                       .transpose_a = form >= tn,
                       .transpose_b = form == nt,
                       .dtype = PIPER_F32};
  const auto elements = [&](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(call.batch * rows * columns);
  };
  std::vector<float> a(elements(call.m, call.k), 1.0f), b(elements(call.k, call.n), 1.0f),
      c(elements(call.m, call.n));
  LibraryReport report;
  const test::TestCall product(call, a.data(), b.data(), c.data(),
                               form == tn_adding ? PIPER_END_ADDS : PIPER_END_WRITES);
  for (auto _ : state) test::call(*torch(), product, &report);
  const double flops = 2.0 * static_cast<double>(call.batch * call.m * call.n * call.k);
  state.counters["flops"] = benchmark::Counter(flops * static_cast<double>(state.iterations()),
                                               benchmark::Counter::kIsRate);
  state.SetLabel(std::string(kFormNames[form]) +
                 "; taken: " + name_of(choose_product(call, Math::automatic, this_processor())));
  torch()->choose(Math::automatic);
}

/// The demo's products in a microbatch of four sequences and in its whole batch, and smaller ones.
void products(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t rows : {512, 4096}) {
    for (const auto& [n, k] :
         {std::pair<std::int64_t, std::int64_t>{256, 256}, {1024, 256}, {256, 1024}}) {
      bench->Args({1, rows, n, k, nn})
          ->Args({1, rows, k, n, nt})
          ->Args({1, k, n, rows, tn})
          ->Args({1, k, n, rows, tn_adding});
    }
  }
  for (const std::int64_t n : {16, 32, 64, 96, 128, 256, 512}) bench->Args({1, n, n, n, nn});
  // q, k, v as one product, and the sum of their adjoints as one: to compare with three of 256.
  for (const std::int64_t rows : {256, 512, 4096})
    bench->Args({1, rows, 768, 256, nn})
        ->Args({1, rows, 256, 768, nt})
        ->Args({1, 256, 768, rows, tn});
  // Attention as products: 4 x 8 heads at 128 positions, 1 x 8 at longer sequences.
  bench->Args({32, 128, 128, 32, nt})->Args({32, 128, 32, 128, nn})->Args({32, 128, 32, 128, tn});
  for (const std::int64_t seq : {512, 1024})
    bench->Args({8, seq, seq, 32, nt})->Args({8, seq, 32, seq, nn})->Args({8, seq, 32, seq, tn});
  bench->ArgNames({"batch", "m", "n", "k", "form"})->Unit(benchmark::kMicrosecond);
}

template <typename T>
void BM_Attend(benchmark::State& state) {
  if (!torch()) return state.SkipWithError("no plugin");
  const std::int64_t seq = state.range(1);
  const PiperAttend call{.batch = state.range(0),
                         .seq = seq,
                         .keys = seq,
                         .heads = 8,
                         .kv_heads = 8,
                         .width = 32,
                         .value_width = 32,
                         .scale = 0.18,
                         .causal = 1,
                         .dtype = sizeof(T) == 8 ? PIPER_F64 : PIPER_F32,
                         .form = PIPER_ATTEND_BUILTIN};
  const std::size_t elements = static_cast<std::size_t>(call.batch * seq) * 8 * 32;
  std::vector<T> q(elements, T(0.1)), k(elements, T(0.2)), v(elements, T(0.3)), out(elements),
      lse(elements), dq(elements), dk(elements), dv(elements);
  std::vector<unsigned char> workspace(piper_attend_workspace(&call));
  LibraryReport report;
  const test::TestCall forward(call, {q.data(), k.data(), v.data()}, {out.data(), lse.data()},
                               workspace.data(), workspace.size()),
      backward(call, {q.data(), k.data(), v.data(), out.data(), lse.data(), q.data()},
               {dq.data(), dk.data(), dv.data()}, workspace.data(), workspace.size());
  for (auto _ : state) {
    test::call(*torch(), forward, &report);
    test::call(*torch(), backward, &report);
  }
}

BENCHMARK_CAPTURE(BM_Gemm, mkl, Math::mkl)->Apply(products);
BENCHMARK_CAPTURE(BM_Gemm, onednn, Math::onednn)->Apply(products);
BENCHMARK(BM_Attend<float>)
    ->ArgNames({"batch", "seq"})
    ->Args({1, 128})
    ->Args({4, 128})
    ->Args({1, 512})
    ->Args({1, 1024})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Attend<double>)
    ->ArgNames({"batch", "seq"})
    ->Args({4, 128})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace piper::runtime
