#pragma once
// The costs that the options of `simulate`, `compare` and `show timeline` give.

#include <optional>

#include "frontend/tools/session.h"
#include "frontend/views/simulation.h"

namespace piper::tools {

/// Nothing after reporting what is wrong with `--cost`, `--w`, `--keep`, `--rates` or `--costs`.
std::optional<views::SimulationCosts> read_simulation_costs(Session& session);

}  // namespace piper::tools
