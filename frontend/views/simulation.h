#pragma once
// The costs of a simulation, and the timeline of a compiled program at them.

#include <optional>

#include "frontend/service/cost_text.h"
#include "frontend/service/machine.h"
#include "passes/simulate/timeline.h"

namespace piper::views {

/// The operations of orders, or with `actions` or a machine those of plans.
struct SimulationCosts {
  passes::OperationCosts operations;
  std::optional<service::MeasuredCosts> actions;
  std::optional<service::FoundMachine> machine;

  bool of_plan() const { return actions || machine; }
  dag::Level needed() const { return of_plan() ? dag::Level::planned : dag::Level::ordered; }
};

/// `dag` is at the level that the costs need. Nothing after an error.
std::optional<passes::Timeline> simulate(const SimulationCosts& costs, const dag::Dag& dag,
                                         DiagnosticSink& sink);

}  // namespace piper::views
