#pragma once
// Messages: a matched Send and Recv for every value that is made on other devices than it is read on, one per source node and reading device set.
//
//   F.stage0.mb1 (pp0) -> F.stage1.mb1 (pp1)   ->   F.stage0.mb1 -> send.F.stage0.mb1.pp1 ~ recv.F.stage0.mb1.pp1 -> F.stage1.mb1

#include "ir/dag/dag.h"

namespace piper::passes {

/// Behind the compute nodes of `dag`, which are all that its nodes are: sends and receives in the order of the source nodes, then of the sets that read.
/// A message carries each output that is read there once, ascending. Edges from beyond the compute nodes, which stand around them, are left. Either end comes from the line that places work there.
void add_messages(dag::Dag& dag, const directive::Strategy& strategy);

}  // namespace piper::passes
