#pragma once
// What is told of a required memory that is exceeded: which lines would lower the most that lives on a rank, and how far, found by compiling with each.

#include <string>

#include "passes/pipeline.h"

namespace piper::passes {

/// `it would be 45.8KiB with `recompute stage`, 42.3KiB with `zero: 3`; …`, after the largest `prefetch` that fits; empty where no line would help. The model was
/// compiled before.
std::string memory_advice(tensor::Graph& model, const directive::Strategy& strategy, const Options& options);

}  // namespace piper::passes
