#pragma once
// Gathered intervals: the reductions and all-gathers of sharded buckets that the order of the work
// requires (docs/layouts.md section 3).
//
// Before this pass a bucket with sharded gradients has one accumulate and one reduce_scatter per
// owner, and one with sharded parameters one all-gather. A *gathered interval* is the uses of a
// bucket at an owner with no other work of its devices between them, in issue order. Each interval
// that reads the parameters gets one all-gather, before the first use of the interval `prefetch`
// intervals earlier (counted over all buckets of the owner); its live range ends with the last
// reader. If the previous all-gather is still live at its place, that one serves the interval too.
// Each interval that makes gradients, or each backward (Reduce::each), gets one accumulate, and a
// reduce_scatter after its last term; another accumulate adds the shards in this order. An
// all-gather that an order names is placed there, for the named work and the uses that follow
// without a break; for a named reduction the last one is placed there.
//
//   F.b.mb0 F.b.mb1 F.c.mb0 B.c.mb0 B.b.mb0      b: gather before F.b.mb0 and before B.b.mb0, accumulate and reduce_scatter behind B.b.mb0
//                                                c: one gather, before F.c.mb0

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// For a DAG of level ordered; does not change existing intervals. False after reporting a
/// `prefetch` without effect, because orders place all of its all-gathers.
bool insert_collectives(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
