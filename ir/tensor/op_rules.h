#pragma once
// The rules of the op table beyond its row: result types, derivative, layout and cost. One function of each kind; adding an op adds a
// row in ops.def, a case here, and a test.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace piper::tensor {

/// Result types of `op`, or the reason (user's words, shapes shown) why the operands do not fit.
struct Inferred {
  std::vector<Type> types;
  std::string error;  // empty: legal
};
Inferred infer(Op op, std::span<const Type> operands, const Attrs& attrs, const SymbolTable& symbols);

/// Whether samples stay independent in this op, given its operands' types and attributes; a coupled op forbids `split` and `replicate` through it.
bool is_samplewise(Op op, std::span<const Type> operands, const Attrs& attrs);

/// Work of one execution. flops: multiply and add count 1 each; bytes: operands read and results written once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
Cost cost(Op op, std::span<const Type> operands, std::span<const Type> results, const Attrs& attrs);

/// Operand dimensions along which the op may be cut without communication, per mesh axis: what results when operand i is cut along a dimension.
/// `cut[i]` is the dimension along which operand i is cut (invalid: whole). Gives the dimension along which every result is cut
/// (`partial` when each part holds a term of a sum), or nothing when that combination of cuts needs communication first.
struct ResultLayout {
  Symbol cut;            // invalid: whole
  bool partial = false;
};
std::optional<ResultLayout> layout(Op op, std::span<const Type> operands, std::span<const Symbol> cut, const Attrs& attrs);

/// What the derivative rule of an op may do: append backward ops. `dy[i]` is invalid where result i has no adjoint.
/// Gives one adjoint per operand; invalid where none is needed (`wanted[i]` false) or the operand is not differentiable.
struct AdjointRequest {
  const Graph& graph;
  const Node& node;
  std::span<const ValueId> dy;
  std::span<const bool> wanted;
};
using Emit = std::function<ValueId(Op op, std::vector<ValueId> operands, Attrs attrs, std::size_t for_operand, std::size_t result)>;
/// `emit` appends one backward op, tagged by the operand it is for (BI or BW is decided from that operand), and gives its result.
std::vector<ValueId> adjoints(const AdjointRequest& request, const Emit& emit);

}  // namespace piper::tensor
