#pragma once
// The scratch of a matrix product of cuBLASLt. Only algorithms that need at most this much are
// considered.

#include <algorithm>
#include <cstdint>

#include "backend/dtypes.h"
#include "ir/alignment.h"
#include "runtime/device_abi.h"

namespace piper::backend::cuda {

/// NVIDIA's recommendation for Hopper and later.
inline constexpr std::uint64_t kMaxProductWorkspace = std::uint64_t{32} << 20;

/// With PIPER_WORKSPACE_ALIGNMENT bytes of slack. Split-K is used only if cuBLASLt offers nothing
/// else (runtime/cuda/cublas_lt.h), so an algorithm needs scratch of the order of its result: four
/// times the result in f32, and at least a page.
inline std::uint64_t product_workspace(const PiperGemm& call) {
  constexpr std::int64_t kPage = 4096;
  constexpr std::uint64_t kResults = 4;
  const std::uint64_t elements = static_cast<std::uint64_t>(call.batch) *
                                 static_cast<std::uint64_t>(call.m) *
                                 static_cast<std::uint64_t>(call.n);
  const std::uint64_t bytes =
      kResults * elements * tensor::dtype_bytes(tensor::wide(row_of(call.dtype).dtype));
  const auto pages = static_cast<std::uint64_t>(round_up(static_cast<std::int64_t>(bytes), kPage));
  return std::clamp<std::uint64_t>(pages, kPage, kMaxProductWorkspace) + PIPER_WORKSPACE_ALIGNMENT;
}

}  // namespace piper::backend::cuda
