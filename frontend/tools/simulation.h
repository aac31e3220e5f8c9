#pragma once
// The costs that the options of `simulate`, `compare` and `show timeline` give.

#include <optional>

#include "frontend/tools/session.h"
#include "frontend/views/simulation.h"

namespace piper::tools {

/// Nothing after reporting what is wrong with `--cost`, `--w`, `--keep`, `--rates`, `--costs` or `--machine`.
std::optional<views::SimulationCosts> read_simulation_costs(Session& session);

/// Values of `-D` that the machine's file takes and the opened program, or what it has under that name, does not are no mistakes of the latter.
void leave_to_machine(Session& session, const views::SimulationCosts& costs, const std::string& name);

}  // namespace piper::tools
