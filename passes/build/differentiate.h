#pragma once
// Differentiation: appends the backward pass of all losses to the forward graph.
//
// Guarantees: each adjoint op is in the region of its forward op and names it as origin. An op that
// computes the adjoint of a parameter, or of a value that depends on no data (a weight times two),
// and any op that only such ops need, is `BW`; all others are `BI`, and no BI op reads the result
// of a BW op. Tags depend on single ops, so a partition may cut the graph anywhere afterwards. The
// adjoint of a value used several times is a chain of `add` in the value's own region, BW if only
// BW ops of that region read it; products with weights in one region do the addition themselves
// (`contract_add`), the last use first. `grads` has one entry per use of a parameter, made in the
// region of the use and used by no op. No adjoints are computed for integers, for frozen
// parameters, for values without trainable parameters upstream, and for values that are never read.
//
//   %y = contract(%x, %w) @F             %d.elements = fill() {scalar: 1/count} @BI of %sum
//   %sum = sum(%y) @F              ->    %d.w = contract(%x, %d.elements) {dims: [batch]} @BW of %y
//   loss "l" elements %y sum %sum        grad "w" %d.w

#include "ir/diagnostics/diagnostics.h"
#include "ir/tensor/op_rules.h"

namespace piper::passes {

/// False after reporting: a graph without losses, a parameter that no loss reaches, an op without
/// derivative on the way to a parameter. The graph is then left partly extended and must not be
/// used. `rule` gives the adjoints of one op. If it gives none for a differentiable operand, that
/// is reported as a bug of the compiler.
bool differentiate(tensor::Graph& graph, DiagnosticSink& sink,
                   const tensor::AdjointsOfOp& rule = tensor::adjoints);

}  // namespace piper::passes
