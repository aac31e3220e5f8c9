#pragma once
// Lowering of one fused step: its ops become statements over loops, split into passes over the
// columns if columns need a reduction of their row.
//
//   softmax along dim ->  pass 0: m = row_max(x)   pass 1: e = exp(x - m); s = row_sum(e)   pass 2: y = e * (1 / s)
//
// Between passes a value is loaded again, computed again if that is a single cheap operation, or
// (in sequences) kept in a row of scratch.

#include <functional>

#include "backend/kernel/fuse.h"
#include "backend/kernel/kernel.h"

namespace piper::backend {

/// The buffers of the body under construction, as far as one step needs them.
struct StepBuffers {
  // The buffer of a value.
  std::function<BufferIndex(tensor::ValueId memory)> of;
  // Whether another step or a port reads it.
  std::function<bool(tensor::ValueId memory)> needed;
  std::function<BufferIndex(int port)> port;  // an output port
  // Scratch for this step.
  std::function<BufferIndex(tensor::DType dtype, std::int64_t elements, std::string_view name,
                            std::string_view what)>
      temporary;
  // An interval that the body reads, by its name there.
  std::function<std::int32_t(const char* of)> interval;
  std::function<const KernelBuffer&(BufferIndex buffer)> at;  // valid until the next `temporary`
  // A gradient that may share memory with another output, because both belong to one parameter.
  std::function<bool(BufferIndex buffer)> shared;
};

/// The loop nest with its statements in dependence order: no passes yet.
Kernel lower_nest(const dag::Body& body, const Axes& axes, const Fusion& fusion,
                  const FusedStep& step, const StepBuffers& buffers, Target target);

/// The loop nest as one thread runs it.
Kernel lower_sequence(const dag::Body& body, const Axes& axes, const Fusion& fusion,
                      const FusedStep& step, const StepBuffers& buffers);

/// `block.3.mlp.0.gelu` -> `gelu`, `d.block.3.mlp.0.up.contract` -> `d_up`; an identifier.
std::string short_name(std::string_view name);

}  // namespace piper::backend
