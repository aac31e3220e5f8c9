#pragma once
// Tune: sets the factors of the learning rate and of the weight decay of parameters.
//
// A `tune` line means the parameters that any operation of the named regions uses. One logical
// parameter has one value, so tied weights are tuned in other regions too. With `decay: matrices`
// parameters that no product and no lookup reads have the decay factor 0, unless a line gives
// another one. Frozen parameters keep the factors 1.
//
//   tune embed with rate: 0.5      weight embed.0.token: normal(0.02)  ->  weight embed.0.token: normal(0.02) rate 0.5
//   adamw(..., decay: matrices)    weight norm.0.gain: ones()          ->  weight norm.0.gain: ones() decay 0

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// Per parameter: whether an operand of `@`, `attend` or `lookup` (its table) is the parameter, or a
/// value made of it by changes of its shape, type or scale alone.
std::vector<bool> read_by_products(const tensor::Graph& model);

/// Applies the lines to a partitioned model. False after reporting lines without trained
/// parameters, or lines that contradict each other.
bool tune(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
