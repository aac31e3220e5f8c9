#pragma once
// What is told of a required memory that is exceeded: which lines would lower the most that lives on a rank, and how far, found by compiling with each.

#include <string>

#include "passes/pipeline.h"

namespace piper::passes {

/// `it would be 45.8KiB with `recompute stage`, 42.3KiB with `zero: 3`; …`, after the largest `prefetch` that fits. A line that saves less
/// than a twentieth of what is missing is not told; where there is no other, what takes most memory is. The model was compiled before.
std::string memory_advice(tensor::Graph& model, const directive::Strategy& strategy, const Options& options);

}  // namespace piper::passes
