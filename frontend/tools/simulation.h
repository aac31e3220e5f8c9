#pragma once
// The costs that the options of `simulate`, `compare` and `show timeline` give.

#include <optional>
#include <span>

#include "frontend/tools/session.h"
#include "frontend/views/simulation.h"

namespace piper::tools {

/// Nothing after reporting an error in `--cost`, `--w`, `--keep`, `--rates`, `--costs` or
/// `--machine`. `overrides`: the sizes that the file of the machine is read at.
std::optional<views::SimulationCosts> read_simulation_costs(
    Session& session, std::span<const lower::Override> overrides);
inline std::optional<views::SimulationCosts> read_simulation_costs(Session& session) {
  return read_simulation_costs(session, session.arguments().overrides);
}

/// Values of `-D` that only the machine's file takes are not errors of the opened program.
void leave_to_machine(Session& session, const views::SimulationCosts& costs,
                      const std::string& name);

}  // namespace piper::tools
