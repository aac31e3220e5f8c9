#pragma once
// Units: the regions at whose instances work is cut where gradients or parameters are (`replicate … with zero: 2` or 3), so that whole ones live for one unit at a time.
//
//   replicate block over dp with zero: 3                                   block
//   partition model into stage: 2; replicate model over dp with zero: 3    embed, block, head: what the stages are made of

#include <vector>

#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// Those that such lines name; of `model` the regions directly inside of stages, or of the model where nothing is partitioned. Each once.
std::vector<Symbol> units(const tensor::Graph& model, const directive::Strategy& strategy);

}  // namespace piper::passes
