#pragma once
// Communicate: no data edge crosses devices any more, and every gradient is reduced over exactly its copies.
//
// - What one node makes for one device set travels in one message: a send and a recv, an ordered list of ports without duplicates.
// - What work on a home contributes to the gradients of a bucket is added up there, by one accumulate. A bucket whose copies see different samples, or that has several
//   homes, is summed by one all_reduce with a member per home; then each home updates its copy.
// - A bucket whose state is cut (`zero: 1`): each home scatters its sums, the blocks are summed over what other axes and homes there are, each device updates its
//   block, and a gather brings all the others. The squares of blocks are summed over the axes that cut them.
// - Where gradients are cut too (`zero: 2`), their sum over the devices is one value, a block; where parameters are (`zero: 3`), an update leaves a block and a gather
//   at the start of the step makes them whole. One of each per home here: `rounds` repeats them once the order of the work is known.
// - The norm: sums of squares per bucket at its first home, gathered on all homes where there are several, one norm node per home. Updates read
//   it when gradients are clipped; its report is always there.
// - A loss: its sums over microbatches, reduced over the replicas, gathered where they lie on several sets, reported at the first one.
// - A masked loss: each set counts its own targets, and one all_reduce joins all sets and replicas.
// - Each comes from the line that it is there for: messages and what joins several sets from a `place`, what joins replicas from a `replicate`.
//
//   F.stage0.mb0 -> F.stage1.mb0     ->     F.stage0.mb0 -> send.F.stage0.mb0.pp1 ~ recv.F.stage0.mb0.pp1 -> F.stage1.mb0

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// Takes a DAG of level placed to level communicating; of its nodes the chunks count alone. False after reporting device sets over which a loss or the norm cannot be gathered.
bool communicate(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

/// Takes a DAG of level placed to its forward-only part: F alone, nothing saved, no updates, and dropout keeps everything. Buckets stay as they are, so that the parameters of
/// the training program and of this one lie at the same places.
void drop_backward(dag::Dag& dag);

}  // namespace piper::passes
