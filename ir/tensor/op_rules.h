#pragma once
// The rules of the op table beyond its row: result types, derivative, layout and cost. One function
// of each kind; adding an op adds a row in ops.def, a case here, and a test.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/layout/layout.h"
#include "ir/tensor/graph.h"

namespace piper::tensor {

/// Result types of `op`, or an error in the user's words with the shapes shown.
struct Inferred {
  std::vector<Type> types;
  std::string error;          // empty: legal
  bool mixes_dtypes = false;  // the operands have different floating types
};
/// `called`: the op's name in the error; empty: that of graph text.
Inferred infer(Op op, std::span<const Type> operands, const Attrs& attrs,
               const SymbolTable& symbols, std::string_view called = {});

/// The memory orders of the operands of a `contract`, for code generation, shape and derivative
/// rules.
struct GemmForm {
  std::vector<Dim> batched;  // in both, not summed
  std::vector<Dim> rest_a;   // M
  std::vector<Dim> rest_b;   // N
  std::vector<Dim> summed;   // K
  // Both are [batched][rest][summed] or [batched][summed][rest] with groups in one order: no copies
  // needed.
  bool direct = false;
  bool a_summed_last = false;  // a is [batched][M][K]; else [batched][K][M]
  bool b_summed_last = false;  // b is [batched][N][K]; else [batched][K][N]
};
GemmForm gemm_form(const Type& a, const Type& b, std::span<const Symbol> summed);

/// Flops per element of the largest operand or result. Transcendentals have the cost of their
/// kernels: an exponential is a polynomial of about ten steps, a division or root four.
double flops_per_element(Op op);

/// Work of one execution. flops: multiply and add count 1 each; bytes: operands read and results
/// written once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
Cost cost(Op op, std::span<const Type> operands, std::span<const Type> results, const Attrs& attrs);

/// A layout rule of an op for one mesh axis: if every operand has the layout of the row, computing
/// locally gives results with these layouts, without communication. An op whose result has
/// dimensions of `shape` uses the local extents.
struct Row {
  llvm::SmallVector<AxisLayout, 4> operands;
  llvm::SmallVector<AxisLayout, 3> results;
};
/// All rows of an op between these types, the all-replicated one first. Rows with equal operands
/// differ in dimensions that the op itself adds.
std::vector<Row> rows(Op op, std::span<const Type> operands, std::span<const Type> results,
                      const Attrs& attrs);

/// The results of an op on operands sharded along the samples: sharded alike, or partial;
/// `coupled`: no row shards the operands so, and the samples must not be divided.
enum class Sampling : std::uint8_t { independent, summed, coupled };
Sampling sampling(Op op, std::span<const Type> operands, std::span<const Type> results,
                  const Attrs& attrs);

/// The interface of a derivative rule: it may append backward ops. `dy[i]` is invalid where result
/// i has no adjoint. Gives one adjoint per operand, of the operand's type (it may be `dy` itself);
/// invalid where none is needed (`wanted[i]` false) or the operand is not differentiable.
struct AdjointRequest {
  const Graph& graph;
  const Node& node;
  std::span<const ValueId> dy;
  std::span<const bool> wanted;
};
using Emit = std::function<ValueId(Op op, std::vector<ValueId> operands, Attrs attrs,
                                   std::size_t for_operand, std::size_t result)>;
/// `emit` appends one backward op, tagged by the operand it is for, and returns its result. The
/// caller tags an op BI as soon as one operand that needs it requires BI.
std::vector<ValueId> adjoints(const AdjointRequest& request, const Emit& emit);
using AdjointsOfOp =
    std::function<std::vector<ValueId>(const AdjointRequest& request, const Emit& emit)>;

/// Whether the adjoint rule covers operand `i`: integer operands, conditions and the ops of the
/// backward pass have no derivative.
bool is_differentiable(Op op, std::size_t operand);

}  // namespace piper::tensor
