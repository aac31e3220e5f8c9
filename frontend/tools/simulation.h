#pragma once
// What `simulate` and `compare` have in common: costs from the command line, and the timeline of a compiled program.

#include <optional>
#include <span>

#include "frontend/service/cost_text.h"
#include "frontend/tools/session.h"
#include "passes/simulate/timeline.h"

namespace piper::tools {

/// The operations of orders, or with `actions` those of plans.
struct SimulationCosts {
  passes::OperationCosts operations;
  std::optional<service::MeasuredCosts> actions;

  dag::Level needed() const { return actions ? dag::Level::planned : dag::Level::ordered; }
};

/// Nothing after reporting what is wrong with `--cost`, `--w`, `--keep`, `--rates` or `--costs`.
std::optional<SimulationCosts> read_simulation_costs(Session& session);

/// `dag` is at the level that the costs need. Nothing after an error.
std::optional<passes::Timeline> simulate(Session& session, const SimulationCosts& costs, const dag::Dag& dag, std::span<const directive::Directive> directives);

}  // namespace piper::tools
