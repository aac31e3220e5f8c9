#pragma once
// Whose code computes an attention call on a GPU, and how much memory it takes beside its operands and results: known from shapes and type alone.
//
// The sizes are what LibTorch 2.11 allocates in a call, for GPUs of up to PIPER_MOST_PROCESSORS multiprocessors: both flash kernels split their work by that number. What a call
// allocates is handed out of the plan in the same order (runtime/cuda/torch_attention.h), each piece at a multiple of PIPER_WORKSPACE_ALIGNMENT; results lie in their own buffers.
//
//   call.form = attention_form(call);
//   attention_workspace(call, false);   // 0 where it is a kernel of ours

#include <cstdint>

#include "runtime/device_abi.h"

namespace piper::backend::cuda {

/// bf16: flash, f32: efficient, where LibTorch's kernels take the shape; f64, and other shapes: a kernel of ours.
PiperAttendForm attention_form(const PiperAttend& call);
/// Why LibTorch's kernels do not take the call, `the width is no multiple of 8`; null where they do.
const char* attention_refusal(const PiperAttend& call);
/// Of a call that has its form. `gradient`: of its attend_grad.
std::uint64_t attention_workspace(const PiperAttend& call, bool gradient);

}  // namespace piper::backend::cuda
