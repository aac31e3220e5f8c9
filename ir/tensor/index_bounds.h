#pragma once
// Bounds of the integers that a model reads: rows of the tables that an input looks up, classes of
// the losses whose target it is.
//
//   %x = lookup(%token, %tokens); %l = cross_entropy(%logits, %targets)   ->   {tokens, 256, %x}, {targets, 256, %l}

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/tensor/graph.h"

namespace piper::tensor {

struct IndexBound {
  InputId input;
  std::int64_t bound = 0;              // its elements lie in [0, bound)
  std::optional<std::int64_t> ignore;  // or are this
  NodeId reader;
};

/// In graph order; inputs that are read through another operation are left out.
std::vector<IndexBound> index_bounds(const Graph& graph);

}  // namespace piper::tensor
