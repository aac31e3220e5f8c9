#pragma once
// List scheduling of the whole DAG: every device runs one chunk at a time; a free device takes the
// first of its ready ones.
//
// It decides the order on devices that no `order` claims, and the order of work inside overlap
// groups. Communication takes no time here. Deterministic: a function of the DAG, the costs and the
// priorities.

#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor/op_rules.h"
#include "passes/order/roles.h"
#include "passes/order/work_graph.h"

namespace piper::passes {

/// Smaller comes first.
struct Priority {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  friend auto operator<=>(const Priority&, const Priority&) = default;
};

/// Time of a chunk at unit costs: F, BI and BW take 1, B takes 2. 0 for every other node.
std::int64_t unit_cost(const dag::Node& node);

/// Flops and bytes of one run of each body by the op table; none for a body with a signature only.
std::vector<tensor::Cost> body_work(const dag::Dag& dag);

/// The same as one number: flops plus 4 per byte (a core with 40 Gflop/s and 10 GB/s).
std::vector<std::int64_t> body_costs(const dag::Dag& dag);

/// The rule for devices without an order: a ready backward first (`B` and `BI` before `BW`), then
/// the lowest microbatch, then the deepest stage. `topological`: all units. Returns one entry per
/// unit.
std::vector<Priority> default_priorities(const dag::Dag& dag, const WorkGraph& graph,
                                         std::span<const std::uint32_t> topological);

/// Longest path from the start of each unit to the end of the step at the given costs.
std::vector<std::int64_t> remaining_paths(const WorkGraph& graph, const Adjacency& more,
                                          std::span<const std::uint32_t> topological,
                                          std::span<const std::int64_t> cost);

/// All chunk nodes in the order in which they start. `more` are edges beside those of the graph;
/// the two together must be acyclic. `cost` and `priority` are per unit, and so is `attached`,
/// which may be empty: whether the unit is an `R` that runs directly before the backward that reads
/// it.
std::vector<dag::NodeId> list_schedule(const dag::Dag& dag, const WorkGraph& graph,
                                       const Adjacency& more, const RoleTable& roles,
                                       std::span<const std::int64_t> cost,
                                       std::span<const Priority> priority,
                                       const std::vector<bool>& attached);

}  // namespace piper::passes
