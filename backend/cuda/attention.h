#pragma once
// The implementation of an attention call on a GPU and its workspace, from shapes and type alone.
//
// The sizes are those that LibTorch 2.11 allocates in a call, for GPUs of up to
// PIPER_MOST_PROCESSORS multiprocessors, because both flash kernels split their work by that
// number. Allocations of a call are served from the plan's workspace in the same order
// (runtime/cuda/torch_attention.h), each at a multiple of PIPER_WORKSPACE_ALIGNMENT; results are in
// their own buffers.
//
//   call.form = attention_form(call);
//   attention_workspace(call, false);   // 0 for built-in attention

#include <cstdint>

#include "runtime/device_abi.h"

namespace piper::backend::cuda {

/// bf16: flash, f32: efficient, if LibTorch's kernels support the shape; f64 and other shapes:
/// built-in.
PiperAttendForm attention_form(const PiperAttend& call);
/// The reason why LibTorch's kernels do not support the call, `the width is no multiple of 8`; null
/// if they do.
const char* attention_refusal(const PiperAttend& call);
/// Bytes for a call with its form set. `gradient`: for its attend_grad.
std::uint64_t attention_workspace(const PiperAttend& call, bool gradient);

}  // namespace piper::backend::cuda
