#pragma once
// Units: with sharded gradients or parameters (`replicate … with zero: 2` or 3), work is divided at
// the instances of these regions, so that full gradients or parameters are live for one unit at a
// time.
//
//   replicate block over dp with zero: 3                                   block
//   partition model into stage: 2; replicate model over dp with zero: 3    embed, block, head: the contents of stages

#include <vector>

#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// The regions that such lines name; for `model` the regions directly inside stages, or inside an
/// unpartitioned model. Each once.
std::vector<Symbol> units(const tensor::Graph& model, const directive::Strategy& strategy);

}  // namespace piper::passes
