#pragma once
// What `show dag` prints for a reader: every node of the DAG once and what it reads, shortened where that is long, without the operations of bodies and without what each rank does at which place.
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
  bool locations = false;  // where in the program each line is from
  bool bodies = false;     // with their operations
};

/// Nodes that are alike stand in one line (node_classes.h), by the devices that run them, and lines that repeat are folded (folded_text.h). The last lines say what is
/// left out, and how to see it. Not read back: `dag::print` is.
std::string dag_view(const dag::Dag& dag, std::span<const directive::Directive> directives, const DagViewOptions& options);

}  // namespace piper::views
