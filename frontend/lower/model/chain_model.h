#pragma once
// The model that stands in where a schedule is shown without one: a chain of equal links, one weight each, and one loss at the end.

#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::lower {

/// As many links as the strategy's partition of the whole model has stages, or units where it gives their sizes; the batch has one sample per part of its splits. The region of link i is `link[i]`.
/// A link has what the lines of the strategy speak of: an activation that can run again, and an optimizer with state where a line offloads that.
void build_chain_model(tensor::Graph& model, directive::Strategy& strategy);

}  // namespace piper::lower
