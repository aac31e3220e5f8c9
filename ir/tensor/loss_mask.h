#pragma once
// Which elements of a loss count: found from the operations that made them.
//
// A `cross_entropy` with `ignore` gives 0 where its target is ignored, and such an element is left out of the mean. That stays true of a value
// that is made from it by factors alone, so the mask goes through products, quotients, casts and renamings; any other operation would add
// something to the elements that do not count.

#include <string>

#include "ir/tensor/graph.h"

namespace piper::tensor {

struct MaskFound {
  InputId targets;      // invalid: every element counts
  std::int32_t ignore = 0;
  std::string error;    // empty: none. Else in the user's words why it is not known which elements count
};

/// Linear in the operations before `elements`; constant where the graph has no `ignore`.
MaskFound find_loss_mask(const Graph& graph, ValueId elements);

}  // namespace piper::tensor
