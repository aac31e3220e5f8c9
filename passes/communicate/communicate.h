#pragma once
// Communicate: afterwards no data edge crosses devices, and every gradient is reduced over exactly
// its copies.
//
// - The outputs of one node for one device set are one message: a send and a recv, with an ordered
//   list of ports without duplicates.
// - One accumulate per owner sums its contributions to the gradients of a bucket. A bucket whose
//   copies have different samples, or that has several owners, is summed by one all_reduce with a
//   member per owner; then each owner updates its copy.
// - A bucket with sharded state (`zero: 1`): each owner reduce-scatters its sums, the shards are
//   all-reduced over the other axes and owners, each device updates its shard, and an all-gather
//   brings the others. The squares of shards are summed over the axes that shard them.
// - With sharded gradients (`zero: 2`) their sum over the devices is one value, a shard; with
//   sharded parameters (`zero: 3`) an update leaves a shard, and an all-gather at the start of the
//   step gives the full ones. Here there is one of each per owner: `insert_collectives` repeats
//   them once the order of the work is known.
// - The norm: sums of squares per bucket at its first owner, gathered on all owners if there are
//   several, one norm node per owner. Updates read it when gradients are clipped; its report is
//   always there.
// - A loss: its sums over microbatches, reduced over the replicas, gathered if they are on several
//   sets, reported at the first one.
// - A masked loss: each set counts its own targets, and one all_reduce joins all sets and replicas.
// - Locations: messages and collectives between sets come from a `place`, collectives over replicas
//   from a `replicate`.
//
//   F.stage0.mb0 -> F.stage1.mb0     ->     F.stage0.mb0 -> send.F.stage0.mb0.pp1 ~ recv.F.stage0.mb0.pp1 -> F.stage1.mb0

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// Takes a DAG of level placed to level communicating; only its chunks are used. False after
/// reporting device sets over which a loss or the norm cannot be gathered.
bool communicate(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

/// Takes a DAG of level placed to its forward-only part: only F, nothing saved, no updates, and
/// dropout with rate 0. Buckets do not change, so that parameters have the same offsets as in the
/// training program.
void drop_backward(dag::Dag& dag);

}  // namespace piper::passes
