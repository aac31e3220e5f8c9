#pragma once
// The scratch of nodes. It follows from a communicating DAG and does not depend on orders.

#include <cstdint>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

/// Bytes per node. No `workspace`: nodes need none. Does not read orders and streams, because
/// another thread may be writing them.
std::vector<std::int64_t> measure_workspaces(const dag::Dag& dag,
                                             const dag::WorkspaceBytes& workspace);

}  // namespace piper::passes
