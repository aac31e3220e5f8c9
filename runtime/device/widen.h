#pragma once
// Attention of bf16 operands by an implementation for f32: operands are widened into the planned
// workspace, and results are rounded once, after all sums. piper_attend_workspace reserves the
// room.
//
//   if (call.shape->of.attend.dtype == PIPER_BF16) return attend_widened(attend_call, call, report);

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

/// The attention of bf16 operands, by `attend` for f32: a forward call.
inline int attend_widened(int (*attend)(const PiperCall&, LibraryReport*), const PiperCall& call,
                          LibraryReport* report) {
  const PiperAttend& of = call.shape->of.attend;
  WidenedOperands operands(of, call.workspace, call.workspace_bytes);
  const void* const in[] = {operands.widened(call.in[0], operands.of_queries(of.width)),
                            operands.widened(call.in[1], operands.of_keys(of.width)),
                            operands.widened(call.in[2], operands.of_keys(of.value_width))};
  float* const result = operands.take(operands.of_queries(of.value_width));
  if (operands.missing() > 0) {
    report->value = static_cast<std::int64_t>(operands.missing());
    return kLibraryOverrun;
  }
  void* const out[] = {result, call.out[1]};
  PiperCallShape wide = *call.shape;
  wide.of.attend.dtype = PIPER_F32;
  const PiperCall widened = {.shape = &wide,
                             .in = in,
                             .out = out,
                             .workspace = operands.remaining(),
                             .workspace_bytes = operands.rest_bytes(),
                             .end = call.end};
  const int failed = attend(widened, report);
  if (failed == kLibraryDone)
    WidenedOperands::round(result, operands.of_queries(of.value_width), call.out[0]);
  return failed;
}

/// Likewise the gradient.
inline int attend_grad_widened(int (*attend_grad)(const PiperCall&, LibraryReport*),
                               const PiperCall& call, LibraryReport* report) {
  const PiperAttend& of = call.shape->of.attend;
  WidenedOperands operands(of, call.workspace, call.workspace_bytes);
  const std::uint64_t queries = operands.of_queries(of.width),
                      results = operands.of_queries(of.value_width);
  const std::uint64_t keys = operands.of_keys(of.width), values = operands.of_keys(of.value_width);
  const void* const in[] = {operands.widened(call.in[0], queries),
                            operands.widened(call.in[1], keys),
                            operands.widened(call.in[2], values),
                            operands.widened(call.in[3], results),
                            call.in[4],
                            operands.widened(call.in[5], results)};
  float* const of_query = operands.take(queries);
  float* const of_key = operands.take(keys);
  float* const of_value = operands.take(values);
  if (operands.missing() > 0) {
    report->value = static_cast<std::int64_t>(operands.missing());
    return kLibraryOverrun;
  }
  void* const out[] = {of_query, of_key, of_value};
  PiperCallShape wide = *call.shape;
  wide.of.attend.dtype = PIPER_F32;
  const PiperCall widened = {.shape = &wide,
                             .in = in,
                             .out = out,
                             .workspace = operands.remaining(),
                             .workspace_bytes = operands.rest_bytes(),
                             .end = call.end};
  const int failed = attend_grad(widened, report);
  if (failed != kLibraryDone) return failed;
  WidenedOperands::round(of_query, queries, call.out[0]);
  WidenedOperands::round(of_key, keys, call.out[1]);
  WidenedOperands::round(of_value, values, call.out[2]);
  return kLibraryDone;
}

}  // namespace piper::runtime
