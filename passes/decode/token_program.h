#pragma once
// Rewrites a model into one that reads a token at a time (ir/dag/token_program.h).
//
// The logits of the model's only `cross_entropy` are the output; the loss and the targets are cut
// away. Values that depend on no token keep all positions, and a value that depends on tokens reads
// the row of its position. `dropout` gives its operand, as on held-out data.
//
//   auto program = passes::make_token_program(lowered.model, settings.loc, sink);

#include <optional>

#include "ir/dag/token_program.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// `model` is forward only. Nothing, and a diagnostic, if it predicts no next token, or if a value
/// at a position depends on other positions except by causal attention. `train`: the place of a
/// diagnostic without a line of its own.
std::optional<dag::TokenProgram> make_token_program(const tensor::Graph& model, LocId train,
                                                    DiagnosticSink& sink);

}  // namespace piper::passes
