#pragma once
// The idle rank: the idle devices of the mesh as one more rank of a timeline, with an empty lane.

#include "ir/dag/dag.h"
#include "passes/simulate/timeline.h"

namespace piper::passes {

/// Adds it as the last rank if there are idle devices that no rank has yet (an order may claim
/// them); its `replicas` is their number.
void add_idle_rank(Timeline& timeline, const dag::Dag& dag);

}  // namespace piper::passes
