#pragma once
// Messages: a matched Send and Recv for values that other devices read, one per source node and
// reading device set.
//
//   F.stage0.mb1 (pp0) -> F.stage1.mb1 (pp1)   ->   F.stage0.mb1 -> send.F.stage0.mb1.pp1 ~ recv.F.stage0.mb1.pp1 -> F.stage1.mb1

#include "ir/dag/dag.h"

namespace piper::passes {

/// Appends sends and receives to the nodes of `dag`, which are compute nodes only, in the order of
/// the source nodes, then of the reading sets. A message carries each output that is read there
/// once, ascending. Edges from nodes around the compute nodes do not change. Either end has the
/// location of the line that places work there.
void add_messages(dag::Dag& dag, const directive::Strategy& strategy);

}  // namespace piper::passes
