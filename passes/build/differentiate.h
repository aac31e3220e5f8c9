#pragma once
// Differentiation: appends the backward pass of all losses to the forward graph.
//
// Guarantees: each adjoint op stands in the region of its forward op and names it as origin. An op that computes the adjoint of a parameter,
// or of a value that no data flows into (a weight times two), and whatever only such ops need, is `BW`; all else is `BI`, and no BI
// op reads what a BW op made. The tags look at single ops, so a partition may cut the graph anywhere afterwards. An adjoint of a value
// used several times is a chain of `add` in the value's own region, BW where only BW ops of that region read it; products with weights that stand in one region
// are added by the products (`contract_add`), the last use first. `grads` has one entry per use of a parameter, made where the use
// stands and used by nothing else. Nothing is computed for integers and frozen parameters, where nothing trainable lies upstream, or that nothing reads.
//
//   %y = contract(%x, %w) @F             %d.elements = fill() {scalar: 1/count} @BI of %sum
//   %sum = sum(%y) @F              ->    %d.w = contract(%x, %d.elements) {dims: [batch]} @BW of %y
//   loss "l" elements %y sum %sum        grad "w" %d.w

#include "ir/diagnostics/diagnostics.h"
#include "ir/tensor/op_rules.h"

namespace piper::passes {

/// False after reporting: a graph without losses, a parameter that no loss reaches, an op without derivative on the way to a parameter.
/// The graph is then left partly extended and must not be used.
/// `rule` gives the adjoints of one op. One that gives none for an operand that is differentiable is a bug of the compiler, and told as such.
bool differentiate(tensor::Graph& graph, DiagnosticSink& sink, const tensor::AdjointsOfOp& rule = tensor::adjoints);

}  // namespace piper::passes
