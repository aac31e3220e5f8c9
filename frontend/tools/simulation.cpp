#include "frontend/tools/simulation.h"

namespace piper::tools {

std::optional<views::SimulationCosts> read_simulation_costs(Session& session) {
  const Arguments& arguments = session.arguments();
  DiagnosticSink& sink = session.sink();
  views::SimulationCosts costs;
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

}  // namespace piper::tools
