#pragma once
// What makes a graph well-formed, one fact at a time: the reader of text and `verify` ask the same questions. Each check gives the reason
// why not, or an empty text.

#include <string>

#include "ir/tensor/infer.h"

namespace piper::tensor {

/// The elements are floating, the sum is a scalar of the type of their sums made in F, the count is that of the elements.
std::string check_loss(const Graph& graph, const Loss& loss);
/// The gradient has its parameter's type, in the dtype of its sums, and is made in the backward pass.
std::string check_grad(const Graph& graph, const ParamGrad& grad);
/// "`f32[a: 2]` and `f32[]`".
std::string types_text(std::span<const Type> types, const SymbolTable& symbols);

}  // namespace piper::tensor
