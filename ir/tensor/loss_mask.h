#pragma once
// The elements of a loss that count, found from the operations that made them.
//
// A `cross_entropy` with `ignore` gives 0 where its target is ignored, and such an element is left
// out of the mean. Products, quotients, casts and renamings keep these zeros, so the mask passes
// through them; any other operation could give an ignored element another value.

#include <string>

#include "ir/tensor/graph.h"

namespace piper::tensor {

struct MaskFound {
  InputId targets;  // invalid: every element counts
  std::int32_t ignore = 0;
  std::string error;  // in the user's words why it is unknown which elements count; else empty
};

/// Linear in the operations before `elements`; constant where the graph has no `ignore`.
MaskFound find_loss_mask(const Graph& graph, ValueId elements);

}  // namespace piper::tensor
