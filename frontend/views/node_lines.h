#pragma once
// The nodes of a DAG and their inputs, one line for similar ones, by the devices that run them. A
// part of `dag_view`.
//
//   on line[p: 1] {
//     recv.F.stage0.mb[0..8].p1 on stream act.p0.to.p1
//     F.stage1.mb[0..8] = @stage1.F (recv.F.stage0.mb.p1, 24 parameters of update.stage1.0)
//     ...
//   }

#include <vector>

#include "frontend/views/node_classes.h"
#include "ir/dag/dag.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::views {

/// A line before them explains the indices. For a plan, streams are left out, because its
/// communicators have them.
void node_lines(const dag::Dag& dag, const std::vector<NodeClass>& classes, bool locations,
                llvm::raw_ostream& os);

}  // namespace piper::views
