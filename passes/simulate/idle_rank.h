#pragma once
// The idle rank: devices of the mesh on which nothing runs, as one more rank of a timeline, with an empty lane.

#include "ir/dag/dag.h"
#include "passes/simulate/timeline.h"

namespace piper::passes {

/// Adds it behind the others, if there are such devices that no rank has yet, as an order may claim them; its replicas are their number.
void add_idle_rank(Timeline& timeline, const dag::Dag& dag);

}  // namespace piper::passes
