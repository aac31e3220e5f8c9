#pragma once
// What nodes take in an arena: facts of a communicating DAG that no order changes.

#include <cstdint>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

struct Sizes {
  std::vector<std::int64_t> workspace;    // per node: bytes of scratch
  std::vector<std::uint32_t> first_port;  // per node, one more: into port_bytes
  std::vector<std::int64_t> port_bytes;   // per output of every node; 0 for outputs that are state
};

/// No `workspace`: nodes need none. Reads neither orders nor streams, which another thread may be writing.
Sizes measure_sizes(const dag::Dag& dag, const dag::WorkspaceBytes& workspace);

}  // namespace piper::passes
