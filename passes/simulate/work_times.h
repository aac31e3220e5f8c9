#pragma once
// The times of the chunks of an ordered DAG: each role runs its chunks in sequence, each as soon as
// its inputs are there. All other nodes take no time, except that messages may have a latency,
// which occupies no device.
//
//   const WorkTimes times(dag, graph, roles, {.cost = costs, .sequences = chunks_of_roles(dag, graph, roles), .runs_with = itself});
//   times.start(graph.unit_of(node))

#include <vector>

#include "passes/order/roles.h"
#include "passes/order/work_graph.h"
#include "passes/simulate/asap_times.h"

namespace piper::passes {

struct WorkRules {
  // Per unit; for units that run as one, on the first of them.
  std::vector<double> cost;
  // of a message, and of an edge between sets without a common device
  double latency = 0;
  // Per role: its units in the order of execution.
  std::vector<std::vector<std::uint32_t>> sequences;
  // Per unit: the first of the units that run as one with it; itself if it runs alone.
  std::vector<std::uint32_t> runs_with;
  // Between units: requirements of an order beside the sequences.
  std::vector<Link> more;
};

/// The chunks of each role, in the order of the DAG.
std::vector<std::vector<std::uint32_t>> chunks_of_roles(const dag::Dag& dag, const WorkGraph& graph,
                                                        const RoleTable& roles);

class WorkTimes {
 public:
  static constexpr std::uint32_t kNone = Times::kNone;
  WorkTimes(const dag::Dag& dag, const WorkGraph& graph, const RoleTable& roles,
            const WorkRules& rules);

  /// Whether all units have a time; if not, there is a cycle.
  bool complete() const { return times_.complete(); }
  double start(std::uint32_t unit) const { return times_.start[activity(unit)]; }
  double finish(std::uint32_t unit) const { return times_.finish[activity(unit)]; }
  /// The unit for whose end it waited last, of equals the previous one on a role; kNone: none.
  std::uint32_t cause(std::uint32_t unit) const {
    const std::uint32_t link = times_.cause[activity(unit)];
    return link == Times::kNone ? kNone : from_[link];
  }
  /// Whether the unit has a time.
  std::vector<bool> started() const;

 private:
  std::uint32_t activity(std::uint32_t unit) const { return runs_with_[unit]; }

  std::vector<std::uint32_t> runs_with_;
  Network network_;
  std::vector<std::uint32_t> from_;  // per link: the unit, among those that run as one
  Times times_;
};

}  // namespace piper::passes
