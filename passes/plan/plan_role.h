#pragma once
// Projection of the ordered DAG onto one role: its actions, the memory of their operands, and their
// waits.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "passes/order/communicators.h"
#include "passes/order/roles.h"
#include "passes/plan/residence.h"

namespace piper::passes {

/// Facts that all roles share, computed once.
struct SharedFacts {
  const dag::Dag& dag;
  const Communicators& communicators;
  Residences residences;
  std::vector<std::int64_t> workspaces;  // per node: bytes of scratch
  // Sorted: a communication that an order names, the chunk of the order step before it.
  std::vector<std::pair<dag::NodeId, dag::NodeId>> issued_after;
};

/// Plans one role after the other; its large tables are allocated once. Each thread has its own.
class RolePlanner {
 public:
  explicit RolePlanner(const SharedFacts& facts);
  ~RolePlanner();
  /// `nodes`: those of the role, in the global order; `buckets`: those that it owns. Fills
  /// everything except name and coordinates.
  dag::Role plan(std::span<const dag::NodeId> nodes, std::span<const dag::BucketId> buckets);

 private:
  class Projection;
  std::unique_ptr<Projection> projection_;
};

}  // namespace piper::passes
