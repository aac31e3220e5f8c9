#pragma once
// Sizes of boxes, computed by code of the verifier's own. Used inside ir/verify alone.

#include <cstdint>

#include "ir/dag/dag.h"

namespace piper::verify {

/// The bytes of the largest box of a value, and the number of its shards.
std::int64_t largest_bytes(const dag::Dag& dag, const tensor::Type& type, LayoutId layout);
std::int64_t shards_of(const dag::Dag& dag, LayoutId layout);

}  // namespace piper::verify
