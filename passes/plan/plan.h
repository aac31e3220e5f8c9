#pragma once
// From level ordered to planned: roles, actions, communicators with windows, buffers with offsets,
// waits.
//
// Guarantees (checked by ir/verify): a rank's actions follow the global linear order; every wait is
// for an earlier action of that order or one of the step before, so there is no deadlock; two
// values share bytes only if all accesses of one happen before the first write of the other, also
// across steps; state is at the front of the arena at offsets that depend on the buckets alone.

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// `dag` is ordered, made by the passes or read from text: all decisions of the order pass, also
/// message sequences, follow from its linear order. `workspace`: bytes of scratch per node; none:
/// nodes need none. Fills `dag.plan`.
void plan(dag::Dag& dag, const dag::WorkspaceBytes& workspace);

}  // namespace piper::passes
