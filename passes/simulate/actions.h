#pragma once
// The simulator of plans: each role issues its actions on their streams, waits for the events of the plan and for its partners, and takes the time that work and
// messages take on a machine (EXECUTION.md sections 3 and 8).
//
//   const Timeline timeline = simulate_actions(dag, action_costs(dag, {.flops = 1e12}));
//   timeline.ranks[0].peak_bytes <= timeline.ranks[0].planned_bytes
//
// One step, at whose begin nothing runs and the step before is over. A communication begins when all of its members have come; a lane is occupied from then on,
// and before that its rank waits. Ranks are classes of equal devices: without a machine the roles. Members of one communication on devices that differ in nothing
// else meet together.

#include <optional>
#include <vector>

#include "ir/machine.h"
#include "passes/simulate/timeline.h"

namespace piper::passes {

/// What a device and its links do in a second; work takes the time of its operations and that of the bytes it moves.
struct MachineRates {
  double flops = 40e9;      // one core of a server
  double bytes = 10e9;
  double latency = 5e-6;    // seconds before the first byte of a message arrives
  double bandwidth = 10e9;  // bytes per second of a link
  bool states_flops = false, states_bytes = false, states_bandwidth = false;  // given, not defaults
};

struct ActionCosts {
  MachineRates rates;
  std::vector<double> body;  // measured seconds of one run of each body, on a device of speed 1; negative: its operations and bytes at the rates
  std::vector<double> work;  // measured seconds of other actions, per node, negative where the rates say; empty: of none
  std::optional<Machine> machine;  // its axes are those of the mesh; none: equal devices, and links of `rates`
};

/// By the op table.
ActionCosts action_costs(const dag::Dag& dag, const MachineRates& rates);

/// Rates of a simulation that nobody stated, for a type of elements: those of one core are taken.
struct AssumedRates {
  bool flops = false, bytes = false;
  const char* kind = nullptr;  // a device at the peaks of its data sheet: no efficiency is stated
  std::vector<std::string> links;  // axes of a machine without a link that communication of the plan crosses
};
AssumedRates assumed_rates(const dag::Dag& dag, const ActionCosts& costs);

/// `dag` is planned, and verified: nothing waits for itself.
Timeline simulate_actions(const dag::Dag& dag, const ActionCosts& costs);

}  // namespace piper::passes
