#pragma once
// The text of `show dag` for a reader: every node of the DAG once with its inputs, shortened if
// long, without the operations of bodies and without the actions of ranks.
//
//   on line[p: 1] {
//     recv.F.stage0.mb[0..8].p1 on stream act.p0.to.p1
//     F.stage1.mb[0..8] = @stage1.F (recv.F.stage0.mb.p1, 24 parameters of update.stage1.0)
//     ...
//     update.stage1.0 (24 gradients of B.stage1.mb[0..8])
//   }

#include <span>
#include <string>

#include "ir/dag/plan.h"

namespace piper::views {

struct DagViewOptions {
  bool locations = false;  // the place in the program of each line
  bool bodies = false;     // with their operations
};

/// Similar nodes share one line (node_classes.h), by the devices that run them, and repeated lines
/// are folded (folded_text.h). The last lines list the omissions, and how to see them. Not parsed
/// back: `dag::print` is.
std::string dag_view(const dag::Dag& dag, std::span<const directive::Directive> directives,
                     const DagViewOptions& options);

}  // namespace piper::views
