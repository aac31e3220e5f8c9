#pragma once
// A `names` item for one model: where the elements of each parameter are in the tensors of a file.
//
//   const auto map = resolve_names(item, lowered.model, lowered.arguments, mention, sink);
//   map->weights[0].strides

#include <optional>
#include <span>

#include "frontend/lower/evaluate/value.h"
#include "frontend/sema/program.h"
#include "ir/weight_map.h"

namespace piper::lower {

/// The item must be `sound`. Each parameter of the model is in the map, and each element of the
/// tensors is filled once. `arguments`: those of the model. `mention`: where the item is named, for
/// diagnostics about lines of the standard library; invalid if it is named nowhere. Nothing, and at
/// least one error (P2520 to P2526, P2070), if the item does not fit the model.
std::optional<WeightMap> resolve_names(const sema::Names& item, const tensor::Graph& model,
                                       std::span<const ModelArgument> arguments,
                                       SourceRange mention, DiagnosticSink& sink);

}  // namespace piper::lower
