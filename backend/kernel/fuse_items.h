#pragma once
// The first half of fusion: the items of loop nests and library calls that a body must execute, and
// the memory in which values are made.
//
// Views and constants are no items unless they are needed in memory.

#include "backend/kernel/fuse.h"

namespace piper::backend {

/// Fills `items`, `calls` and `output_port`.
void find_items(const dag::Body& body, const Axes& axes, Target target, Fusion& out);

}  // namespace piper::backend
