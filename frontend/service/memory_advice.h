#pragma once
// What is told of a required memory that is exceeded: which lines would lower the most that lives on a rank, and how far, found by compiling with each.

#include <string>

#include "frontend/lower/lower.h"
#include "passes/pipeline.h"

namespace piper::service {

/// `it would be 45.8KiB with `recompute stage`, 42.3KiB with `zero: 3`; …`, after the largest `prefetch` that fits. A line that saves less
/// than a twentieth of what is missing is not told; where there is no other, what takes most memory is.
std::string memory_advice(const lower::Lowered& lowered, const passes::Options& options);

}  // namespace piper::service
