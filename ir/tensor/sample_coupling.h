#pragma once
// Models in which the samples of a batch depend on each other: a norm or softmax along the batch,
// or a sum over it that is no loss.

#include <span>

#include "ir/tensor/graph.h"

namespace piper::tensor {

/// Whether samples depend on each other in this operation. The sums of losses, one per loss, go
/// over samples and do not couple them.
bool couples_samples(const Graph& graph, const Node& node, std::span<const ValueId> loss_sums);

/// The first such operation of the forward pass; null if each sample is computed from its own
/// inputs.
const Node* coupled_operation(const Graph& graph, std::span<const ValueId> loss_sums);

}  // namespace piper::tensor
