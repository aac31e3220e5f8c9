#include "frontend/views/simulation.h"

#include "passes/simulate/operations.h"

namespace piper::views {

std::optional<passes::Timeline> simulate(const SimulationCosts& costs, const dag::Dag& dag, DiagnosticSink& sink) {
  if (!costs.of_plan()) return passes::simulate_operations(dag, costs.operations, sink);
  if (costs.machine && !service::fits(costs.machine->machine, dag, sink)) return std::nullopt;
  passes::ActionCosts actions = service::costs_of(dag, costs.actions.value_or(service::MeasuredCosts()), sink);
  if (costs.machine) {
    actions.machine = costs.machine->machine;
    service::tell_small_devices(*actions.machine, dag, sink);
  }
  return passes::simulate_actions(dag, actions);
}

}  // namespace piper::views
