#pragma once
// The conditions of a well-formed graph, checked by the parser and by `verify`. Each check returns
// an error text, empty if the condition holds.

#include <string>

#include "ir/tensor/infer.h"

namespace piper::tensor {

/// The elements are floating, the sum is an F scalar in their wide type, the count is their number.
std::string check_loss(const Graph& graph, const Loss& loss);
/// The gradient has its parameter's type in the wide dtype and is computed in the backward pass.
std::string check_grad(const Graph& graph, const ParamGrad& grad);
/// "`f32[a: 2]` and `f32[]`".
std::string types_text(std::span<const Type> types, const SymbolTable& symbols);

}  // namespace piper::tensor
