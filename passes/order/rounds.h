#pragma once
// Rounds: reductions and gathers of what is cut, as often as the order of the work asks for (docs/layouts.md section 3).
//
// Below, every bucket whose gradients are cut has one accumulate and one reduce_scatter per home, and one whose parameters are cut one gather. A *run* is the uses of a bucket at a home
// with no other work of its devices between them, in issue order. Per run that reads the parameters there is one gather, before the first use of the run `prefetch` runs
// earlier (runs of all buckets of the home are counted together), and its value ends with the last reader; where the one before still lives there, it serves on. Per run
// that makes gradients, or per backward (Reduce::each), there is one accumulate of these, and its reduce_scatter behind the last of them; an accumulate adds the blocks in that order. Where an order names a
// gather, it stands where the order says, for the work that is named and what goes on from it without a break; of a reduction the last one stands where the order says.
//
//   F.b.mb0 F.b.mb1 F.c.mb0 B.c.mb0 B.b.mb0      b: gather before F.b.mb0 and before B.b.mb0, accumulate and reduce_scatter behind B.b.mb0
//                                                c: one gather, before F.c.mb0

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// Of a DAG of level ordered. What is in rounds already stays as it is. False after reporting lines whose `prefetch` says nothing: orders place all that it is about.
bool make_rounds(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
