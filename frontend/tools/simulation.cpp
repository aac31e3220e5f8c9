#include "frontend/tools/simulation.h"

#include "passes/order/orders_table.h"
#include "passes/simulate/operations.h"

namespace piper::tools {

std::optional<SimulationCosts> read_simulation_costs(Session& session) {
  const Arguments& arguments = session.arguments();
  DiagnosticSink& sink = session.sink();
  SimulationCosts costs;
  if (!arguments.cost.empty()) service::read_costs(arguments.cost, costs.operations, sink);
  if (!arguments.kept_weights.empty()) service::read_costs("w=" + arguments.kept_weights, costs.operations, sink);
  if (!arguments.kept_forward.empty()) service::read_costs("keep=" + arguments.kept_forward, costs.operations, sink);
  if (!arguments.costs_file.empty()) {
    costs.actions = service::read_cost_file(arguments.costs_file, session.console().files, session.context().locations.files(), sink);
  }
  if (!arguments.rates.empty()) {
    if (!costs.actions) costs.actions.emplace();
    service::read_rates(arguments.rates, costs.actions->rates, sink);
  }
  return sink.has_errors() ? std::nullopt : std::optional(std::move(costs));
}

std::optional<passes::Timeline> simulate(Session& session, const SimulationCosts& costs, const dag::Dag& dag, std::span<const directive::Directive> directives) {
  if (!costs.actions) return passes::simulate_operations(dag, passes::partition_name(directives), costs.operations, session.sink());
  return passes::simulate_actions(dag, service::costs_of(dag, *costs.actions, session.sink()));
}

}  // namespace piper::tools
