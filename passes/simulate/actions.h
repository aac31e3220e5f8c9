#pragma once
// The simulator of plans: each role issues its actions on their streams, waits for the events of
// the plan and for its partners, with the durations of work and messages on a machine
// (docs/execution.md sections 3 and 8).
//
//   const Timeline timeline = simulate_actions(dag, action_costs(dag, {.flops = 1e12}));
//   timeline.ranks[0].peak_bytes <= timeline.ranks[0].planned_bytes
//
// Simulates one step, at whose begin the previous step is over. A communication begins when all of
// its members have arrived; it occupies the lane from then on, and before that its rank waits.
// Ranks are classes of equal devices: without a machine the roles. Instances of a communication on
// equal devices are simulated once.

#include <optional>
#include <vector>

#include "ir/machine.h"
#include "passes/simulate/timeline.h"

namespace piper::passes {

/// The rates of a device and its links; work takes the time of its operations plus that of the
/// bytes it moves.
struct MachineRates {
  double flops = 40e9;  // one core of a server
  double bytes = 10e9;
  double latency = 5e-6;    // seconds before the first byte of a message arrives
  double bandwidth = 10e9;  // bytes per second of a link
  // Stated rates, not the default ones.
  bool states_flops = false, states_bytes = false, states_bandwidth = false;
};

struct ActionCosts {
  MachineRates rates;
  // Measured seconds of one run of each body, on a device of speed 1; negative: its operations and
  // bytes at the rates.
  std::vector<double> body;
  // Measured seconds of other actions, per node; negative: by the rates; empty: none measured.
  std::vector<double> work;
  // Its axes are those of the mesh; none: equal devices, and links of `rates`.
  std::optional<Machine> machine;
};

/// By the op table.
ActionCosts action_costs(const dag::Dag& dag, const MachineRates& rates);

/// Rates that no machine states, for a type of elements: the simulation uses those of one core.
struct AssumedRates {
  bool flops = false, bytes = false;
  const char* kind = nullptr;  // a device at the peaks of its data sheet: no efficiency is stated
  // Axes of a machine without a link that communication of the plan crosses.
  std::vector<std::string> links;
};
AssumedRates assumed_rates(const dag::Dag& dag, const ActionCosts& costs);

/// `dag` must be planned and verified, so that it has no deadlock.
Timeline simulate_actions(const dag::Dag& dag, const ActionCosts& costs);

}  // namespace piper::passes
