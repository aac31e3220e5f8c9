#pragma once
// The entries of a simulated timeline: its ranks with their compute lanes, the operations that run
// there, and the curves of their activations.
//
//   TimelineEntries made = make_entries({.dag = dag, ..., .times = times, .alike = alike, .ranks = 4});
//   made.timeline.start[made.entry_of[unit]]

#include <cstdint>
#include <vector>

#include "passes/order/orders_table.h"
#include "passes/order/work_graph.h"
#include "passes/simulate/costs.h"
#include "passes/simulate/timeline.h"
#include "passes/simulate/work_fraction.h"
#include "passes/simulate/work_times.h"

namespace piper::passes {

/// A simulated run of an ordered DAG.
struct SimulatedRun {
  const dag::Dag& dag;
  const OperationCosts& costs;
  const OrdersTable& table;
  const WorkGraph& graph;
  const WorkFractions& fractions;
  const WorkRules& rules;                   // of `times`
  const WorkTimes& times;                   // complete
  const std::vector<std::uint32_t>& alike;  // per row: number of rows with the same work
  double ranks = 0;                         // number of ranks with different work
};

struct TimelineEntries {
  // With its operations, ranks, lanes, entries and curves; entries have no causes yet.
  Timeline timeline;
  std::vector<std::uint32_t> entry_of;  // per unit: its entry on the first rank that has it
  // Per entry: the chunk that was the last to wait for an input from another operation.
  std::vector<dag::NodeId> binding;
};

/// Makes the entries of a run, rank by rank in the order of the table.
TimelineEntries make_entries(const SimulatedRun& run);

/// Per node: its position in the linear order of the DAG.
std::vector<std::uint32_t> positions_in_order(const dag::Dag& dag);

}  // namespace piper::passes
