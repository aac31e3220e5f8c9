#pragma once
// Communicators and roles of a plan. A part of `dag_view`.
//
//   communicator p0.to.p1: send.F.stage0.mb[0..8].p1 on stream act.p0.to.p1, window 2, at least 1
//   role p0 at line[p: 0]: arena 24.6MiB, 354 buffers, 33 waits
//     45 actions: 28 on compute, 8 on act.p0.to.p1 and on grad.p1.to.p0, 1 on gather.p0
//     at peak 24.5MiB: parameters 657.5KiB, ...

#include <vector>

#include "frontend/views/node_classes.h"
#include "ir/dag/plan.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::views {

/// `dag` has a plan. A line for each communicator, and three for each of the first roles.
void plan_lines(const dag::Dag& dag, const std::vector<NodeClass>& classes, bool locations,
                llvm::raw_ostream& os);

}  // namespace piper::views
