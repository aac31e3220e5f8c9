#pragma once
// The nodes of a DAG and what they read, a line for those that are alike, by the devices that run them. A part of `dag_view`.
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

/// With a line before them that says what indices mean. Of a plan without streams, which those of its communicators are.
void node_lines(const dag::Dag& dag, const std::vector<NodeClass>& classes, bool locations, llvm::raw_ostream& os);

}  // namespace piper::views
