#pragma once
// From level ordered to planned: roles, actions, communicators with windows, buffers with offsets, waits.
//
// Guarantees (what ir/verify checks on the result): a rank's actions stand in the global linear order; every wait is for an earlier action of that order or one of the
// step before, so the plan makes progress; two values share bytes only where all accesses of one happen before the first write of the other,
// across the end of a step, too; state lies at the front of the arena at offsets that depend on the buckets alone.

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// `dag` is ordered, made by the passes or read from text: what the order fixed, sequences of messages among it, follows from its linear order. `workspace`:
/// bytes of scratch per node; none: nodes need none. Fills `dag.plan`.
void plan(dag::Dag& dag, const dag::WorkspaceBytes& workspace);

}  // namespace piper::passes
