#pragma once
// The scratch of nodes: a fact of a communicating DAG that no order changes.

#include <cstdint>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

/// Bytes per node. No `workspace`: nodes need none. Reads neither orders nor streams, which another thread may be writing.
std::vector<std::int64_t> measure_workspaces(const dag::Dag& dag, const dag::WorkspaceBytes& workspace);

}  // namespace piper::passes
