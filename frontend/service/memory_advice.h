#pragma once
// The hint of an exceeded memory requirement: lines that would lower the peak memory of a rank, and
// the resulting peak, found by compiling with each.

#include <string>

#include "frontend/lower/lower.h"
#include "passes/pipeline.h"

namespace piper::service {

/// `it would be 45.8KiB with `recompute stage`, 42.3KiB with `zero: 3`; …`, after the largest
/// `prefetch` that fits. A line that saves less than a twentieth of the missing memory is left out;
/// if none is left, the hint names the largest consumer of memory.
std::string memory_advice(const lower::Lowered& lowered, const passes::Options& options);

}  // namespace piper::service
