#pragma once
// The first half of fusion: what of a body must be executed, as items of loop nests and as library calls, and in which memory values are made.
//
// Views and constants are no items unless somebody needs them in memory.

#include "backend/kernel/fuse.h"

namespace piper::backend {

/// Fills `items`, `calls` and `home`.
void find_items(const dag::Body& body, const Axes& axes, Target target, Fusion& out);

}  // namespace piper::backend
