#pragma once
// Freeze: marks the parameters that `freeze` lines name, before the model is differentiated.
//
// A parameter is frozen if any operation of the named regions uses it. One logical parameter has
// one value, so tied weights are frozen in other regions too. Differentiation treats it as a
// constant.
//
//   freeze embed        weight embed.0.token: normal(0.02)  ->  weight embed.0.token: normal(0.02) frozen

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// Whether a `freeze` line names stages of a partition, which are known only after partitioning.
bool freezes_parts(const directive::Strategy& strategy);

/// Applies the lines that name no stages. False after reporting lines without parameters, or that
/// no weight is left to train.
bool freeze(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink);
/// Applies the lines that name stages, to a partitioned model.
bool freeze_parts(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
