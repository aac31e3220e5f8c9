#include "frontend/views/simulation.h"

#include "passes/order/orders_table.h"
#include "passes/simulate/operations.h"

namespace piper::views {

std::optional<passes::Timeline> simulate(const SimulationCosts& costs, const dag::Dag& dag, std::span<const directive::Directive> directives, DiagnosticSink& sink) {
  if (!costs.actions) return passes::simulate_operations(dag, passes::partition_name(directives), costs.operations, sink);
  return passes::simulate_actions(dag, service::costs_of(dag, *costs.actions, sink));
}

}  // namespace piper::views
