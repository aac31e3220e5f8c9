#pragma once
// Attention of bf16 operands by an implementation for f32: operands are widened into the planned
// workspace, and results are rounded once, after all sums. piper_attend_workspace reserves the
// room.
//
//   if (call->dtype == PIPER_BF16) return attend_widened(attend_call, *call, q, k, v, out, lse, workspace, bytes, report);

#include <cstdint>

#include "runtime/alignment.h"
#include "runtime/device/library_calls.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {

/// The workspace of a call, allocated from its start.
class WidenedOperands {
 public:
  WidenedOperands(const PiperAttend& call, void* workspace, std::uint64_t bytes)
      : call_(call), next_(static_cast<unsigned char*>(workspace)), left_(bytes) {}

  std::uint64_t of_queries(std::int64_t width) const {
    return static_cast<std::uint64_t>(call_.batch * call_.seq * call_.heads * width);
  }
  std::uint64_t of_keys(std::int64_t width) const {
    return static_cast<std::uint64_t>(call_.batch * call_.keys * call_.kv_heads * width);
  }

  /// Room for `elements` numbers; null if there is none.
  float* take(std::uint64_t elements) {
    const std::uint64_t bytes = aligned(elements * sizeof(float));
    if (bytes > left_) {
      missing_ += bytes - left_;
      return nullptr;
    }
    auto* const memory = reinterpret_cast<float*>(next_);
    next_ += bytes;
    left_ -= bytes;
    return memory;
  }
  const float* widened(const void* from, std::uint64_t elements) {
    float* const to = take(elements);
    for (std::uint64_t i = 0; to != nullptr && i < elements; ++i)
      to[i] = static_cast<const piper_bf16*>(from)[i];
    return to;
  }
  static void round(const float* from, std::uint64_t elements, void* to) {
    for (std::uint64_t i = 0; i < elements; ++i) static_cast<piper_bf16*>(to)[i] = from[i];
  }

  unsigned char* remaining() const { return next_; }
  std::uint64_t rest_bytes() const { return left_; }
  std::uint64_t missing() const { return missing_; }

 private:
  const PiperAttend& call_;
  unsigned char* next_;
  std::uint64_t left_, missing_ = 0;
};

inline int attend_widened(decltype(LibraryCalls::attend) attend, const PiperAttend& call,
                          const void* q, const void* k, const void* v, void* out, void* lse,
                          void* workspace, std::uint64_t workspace_bytes, LibraryReport* report) {
  WidenedOperands operands(call, workspace, workspace_bytes);
  const float* const query = operands.widened(q, operands.of_queries(call.width));
  const float* const key = operands.widened(k, operands.of_keys(call.width));
  const float* const value = operands.widened(v, operands.of_keys(call.value_width));
  float* const result = operands.take(operands.of_queries(call.value_width));
  if (operands.missing() > 0) {
    report->value = static_cast<std::int64_t>(operands.missing());
    return kLibraryOverrun;
  }
  PiperAttend wide = call;
  wide.dtype = PIPER_F32;
  const int failed = attend(&wide, query, key, value, result, lse, operands.remaining(),
                            operands.rest_bytes(), report);
  if (failed == kLibraryDone)
    WidenedOperands::round(result, operands.of_queries(call.value_width), out);
  return failed;
}

inline int attend_grad_widened(decltype(LibraryCalls::attend_grad) attend_grad,
                               const PiperAttend& call, const void* q, const void* k, const void* v,
                               const void* out, const void* lse, const void* dout, void* dq,
                               void* dk, void* dv, void* workspace, std::uint64_t workspace_bytes,
                               LibraryReport* report) {
  WidenedOperands operands(call, workspace, workspace_bytes);
  const std::uint64_t queries = operands.of_queries(call.width),
                      results = operands.of_queries(call.value_width);
  const std::uint64_t keys = operands.of_keys(call.width),
                      values = operands.of_keys(call.value_width);
  const float* const query = operands.widened(q, queries);
  const float* const key = operands.widened(k, keys);
  const float* const value = operands.widened(v, values);
  const float* const result = operands.widened(out, results);
  const float* const change = operands.widened(dout, results);
  float* const of_query = operands.take(queries);
  float* const of_key = operands.take(keys);
  float* const of_value = operands.take(values);
  if (operands.missing() > 0) {
    report->value = static_cast<std::int64_t>(operands.missing());
    return kLibraryOverrun;
  }
  PiperAttend wide = call;
  wide.dtype = PIPER_F32;
  const int failed = attend_grad(&wide, query, key, value, result, lse, change, of_query, of_key,
                                 of_value, operands.remaining(), operands.rest_bytes(), report);
  if (failed != kLibraryDone) return failed;
  WidenedOperands::round(of_query, queries, dq);
  WidenedOperands::round(of_key, keys, dk);
  WidenedOperands::round(of_value, values, dv);
  return kLibraryDone;
}

}  // namespace piper::runtime
