#pragma once
// How much scratch the plan has for a matrix product of cuBLASLt. The algorithm is chosen among those that need no more.

#include <algorithm>
#include <cstdint>

#include "backend/dtypes.h"
#include "ir/alignment.h"
#include "runtime/device_abi.h"

namespace piper::backend::cuda {

/// What NVIDIA recommends for Hopper and later.
inline constexpr std::uint64_t kMostProductWorkspace = std::uint64_t{32} << 20;

/// With PIPER_WORKSPACE_ALIGNMENT bytes of slack. Sums are split only where cuBLASLt offers nothing else (runtime/cuda/cublas_lt.h), so what an algorithm stages is of the order of its result: four of it in f32, and no less than a page.
inline std::uint64_t product_workspace(const PiperGemm& call) {
  constexpr std::int64_t kPage = 4096;
  constexpr std::uint64_t kResults = 4;
  const std::uint64_t elements = static_cast<std::uint64_t>(call.batch) * static_cast<std::uint64_t>(call.m) * static_cast<std::uint64_t>(call.n);
  const std::uint64_t bytes = kResults * elements * tensor::dtype_bytes(tensor::wide(row_of(call.dtype).dtype));
  const auto pages = static_cast<std::uint64_t>(round_up(static_cast<std::int64_t>(bytes), kPage));
  return std::clamp<std::uint64_t>(pages, kPage, kMostProductWorkspace) + PIPER_WORKSPACE_ALIGNMENT;
}

}  // namespace piper::backend::cuda
