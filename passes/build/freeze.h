#pragma once
// Freeze: marks the parameters that `freeze` lines name, before the model is differentiated.
//
// A parameter is frozen where any operation of the named regions uses it: one logical parameter has one value, so one that is also used elsewhere (tied weights)
// stays as it starts there, too. Nothing is computed for it afterwards: differentiation sees no weight there.
//
//   freeze embed        weight embed.0.token: normal(0.02)  ->  weight embed.0.token: normal(0.02) frozen

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// Whether a `freeze` line names parts that a partition makes: those are known only when the model is cut.
bool freezes_parts(const directive::Strategy& strategy);

/// Marks what the lines name but those of parts. False after reporting lines that name no parameter, or that nothing is left to train.
bool freeze(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink);
/// Marks what the lines of parts name, of a model that is cut.
bool freeze_parts(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
