#pragma once
// From level ordered to planned: roles, actions, communicators with windows, buffers with offsets, waits.
//
// Guarantees (what ir/verify checks on the result): a rank's actions stand in the global linear order; every wait is for an earlier action of that order or one of the
// step before, so the plan makes progress; two values share bytes only where all accesses of one happen before the first write of the other,
// across the end of a step, too; state lies at the front of the arena at offsets that depend on the buckets alone.

#include "ir/diagnostics/diagnostics.h"
#include "passes/order.h"
#include "passes/sizes.h"

namespace piper::passes {

/// `ordered`, `sizes`: of this DAG. Fills `dag.plan` and checks the requirements on measures. False when one is not met.
bool plan(dag::Dag& dag, Ordered ordered, Sizes sizes, DiagnosticSink& sink);

}  // namespace piper::passes
