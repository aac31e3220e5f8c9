#include "runtime/device/product_choice.h"

#include <algorithm>

#include "runtime/dtypes.h"

namespace piper::runtime {
namespace {

// A call of oneDNN takes some 15 us before it multiplies, as long as MKL takes for a product of 90
// x 90 x 90; and it needs matrices that fill its blocks.
constexpr std::int64_t kMinExtent = 32;
constexpr std::int64_t kMinWork = 128 * 128 * 128;

// Rows of a call, and the maximum memory of them: second-level caches have 512 KiB to 2 MiB.
constexpr std::int64_t kPanelRows = 256;
constexpr std::int64_t kPanelBytes = 1 << 20;

/// MKL is the faster one for all products, or the only one.
bool takes_mkl_alone(const Processor& processor) { return processor.intel || !processor.avx512; }

}  // namespace

Processor this_processor() {
#if defined(__x86_64__)
  return {.intel = __builtin_cpu_is("intel") != 0,
          .avx512 = __builtin_cpu_supports("avx512bw") != 0 &&
                    __builtin_cpu_supports("avx512vl") != 0 &&
                    __builtin_cpu_supports("avx512dq") != 0};
#else
  return {};
#endif
}

ProductLibrary choose_product(const PiperGemm& call, Math math, const Processor& processor) {
  // oneDNN has no other type that is used here.
  if (call.dtype != PIPER_F32) return ProductLibrary::mkl;
  if (math != Math::automatic)
    return math == Math::onednn ? ProductLibrary::onednn : ProductLibrary::mkl;
  if (takes_mkl_alone(processor)) return ProductLibrary::mkl;
  const std::int64_t least = std::min({call.m, call.n, call.k});
  const bool large = least >= kMinExtent && call.batch * call.m * call.n * call.k >= kMinWork;
  return large ? ProductLibrary::onednn : ProductLibrary::mkl;
}

std::int64_t rows_per_call(const PiperGemm& call, std::uint32_t threads) {
  const auto bytes = static_cast<std::int64_t>(element_bytes(call.dtype));
  const bool whole = threads > 1 || call.batch != 1 || call.transpose_a ||
                     call.n > kPanelBytes / (kPanelRows * bytes);
  return whole ? call.m : std::min(call.m, kPanelRows);
}

const char* rule_of_products(Math math, const Processor& processor) {
  switch (math) {
    case Math::builtin: return "built in";
    case Math::onednn: return "f32 by oneDNN, bf16 by MKL";
    case Math::mkl: return "MKL";
    case Math::automatic: break;
  }
  return takes_mkl_alone(processor) ? "MKL" : "large f32 by oneDNN";
}

const char* name_of(ProductLibrary library) {
  return library == ProductLibrary::onednn ? "oneDNN" : "MKL";
}

}  // namespace piper::runtime
