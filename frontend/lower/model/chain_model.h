#pragma once
// The model of a schedule that is shown without one: a chain of equal links, one weight each, and
// one loss at the end.

#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::lower {

/// One link per stage of the strategy's partition of the whole model, or per unit if it gives their
/// sizes; the batch has one sample per part of its splits. The region of link i is `link[i]`. A
/// link has what the directives of the strategy need: an activation that can run again, and an
/// optimizer with state if a line offloads that.
void build_chain_model(tensor::Graph& model, directive::Strategy& strategy);

}  // namespace piper::lower
