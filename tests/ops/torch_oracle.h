#pragma once
// LibTorch as an oracle: evaluates ops and forward graphs, and differentiates them with its own
// autograd. No LibTorch type leaves torch_oracle.cpp.

#include <map>
#include <vector>

#include "tests/support/evaluate.h"

namespace piper::test {

/// One op of the table by LibTorch; an adjoint op is LibTorch's derivative of the forward op.
std::vector<Array> torch_op(tensor::Op op, const std::vector<Array>& operands,
                            const std::vector<tensor::Type>& results, const tensor::Attrs& attrs,
                            const DropoutMask& keeps);

struct TorchStep {
  double loss = 0;               // sum over all losses of the mean of their elements
  std::vector<Array> gradients;  // by parameter
};

/// The forward ops of `graph` on `leaves`, then LibTorch's backward pass.
TorchStep torch_step(const tensor::Graph& graph, const std::map<tensor::ValueId, Array>& leaves,
                     const DropoutMask& keeps);

}  // namespace piper::test
