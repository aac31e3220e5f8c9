#pragma once
// The rules of the op table beyond its row: result types, derivative, layout and cost. One function of each kind; adding an op adds a
// row in ops.def, a case here, and a test.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/layout/layout.h"
#include "ir/tensor/graph.h"

namespace piper::tensor {

/// Result types of `op`, or the reason (user's words, shapes shown) why the operands do not fit.
struct Inferred {
  std::vector<Type> types;
  std::string error;  // empty: legal
  bool mixes_dtypes = false;  // the error is of operands of different floating types
};
/// `called`: as the reason shall name the op; empty: as graph text does.
Inferred infer(Op op, std::span<const Type> operands, const Attrs& attrs, const SymbolTable& symbols, std::string_view called = {});

/// How the operands of a `contract` lie in memory. Code generation, shape and derivative rules read it from here.
struct GemmForm {
  std::vector<Dim> batched;  // in both, not summed
  std::vector<Dim> rest_a;   // M
  std::vector<Dim> rest_b;   // N
  std::vector<Dim> summed;   // K
  bool direct = false;         // both lie as [batched][rest][summed] or [batched][summed][rest], groups in one order: no copies needed
  bool a_summed_last = false;  // a is [batched][M][K]; else [batched][K][M]
  bool b_summed_last = false;  // b is [batched][N][K]; else [batched][K][N]
};
GemmForm gemm_form(const Type& a, const Type& b, std::span<const Symbol> summed);

/// Flops per element of the largest operand or result. Transcendentals count what kernels spend on them: an exponential is a polynomial of about ten steps, a
/// division or root four.
double flops_per_element(Op op);

/// Work of one execution. flops: multiply and add count 1 each; bytes: operands read and results written once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
Cost cost(Op op, std::span<const Type> operands, std::span<const Type> results, const Attrs& attrs);

/// What an op makes, on one mesh axis, of operands of which each device has a part: if every operand has the share that the row says, computing on the parts gives results of these
/// shares, without communication. An op whose result has dimensions of `shape` computes on the extents of the part.
struct Row {
  llvm::SmallVector<AxisShare, 4> operands;
  llvm::SmallVector<AxisShare, 3> results;
};
/// All rows of an op between these types, the one that repeats everything first. Rows of equal operands differ in dimensions that the op itself adds.
std::vector<Row> rows(Op op, std::span<const Type> operands, std::span<const Type> results, const Attrs& attrs);

/// What an op makes of operands of which each device has some samples: its own samples of the results, or a term of sums over all; `coupled`: no row cuts the operands so, and nothing may
/// divide the samples.
enum class Sampling : std::uint8_t { independent, summed, coupled };
Sampling sampling(Op op, std::span<const Type> operands, std::span<const Type> results, const Attrs& attrs);

/// What the derivative rule of an op may do: append backward ops. `dy[i]` is invalid where result i has no adjoint.
/// Gives one adjoint per operand, of the operand's type (it may be `dy` itself); invalid where none is needed (`wanted[i]` false) or the
/// operand is not differentiable.
struct AdjointRequest {
  const Graph& graph;
  const Node& node;
  std::span<const ValueId> dy;
  std::span<const bool> wanted;
};
using Emit = std::function<ValueId(Op op, std::vector<ValueId> operands, Attrs attrs, std::size_t for_operand, std::size_t result)>;
/// `emit` appends one backward op, tagged by the operand it is for, and gives its result. The caller tags an op BI as soon as one operand
/// that needs it asks for BI.
std::vector<ValueId> adjoints(const AdjointRequest& request, const Emit& emit);
using AdjointsOfOp = std::function<std::vector<ValueId>(const AdjointRequest& request, const Emit& emit)>;

/// Whether the adjoint rule covers operand `i`: integer operands, conditions and the ops of the backward pass have no derivative.
bool is_differentiable(Op op, std::size_t operand);

}  // namespace piper::tensor
