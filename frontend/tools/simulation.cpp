#include "frontend/tools/simulation.h"

#include <algorithm>

namespace piper::tools {

std::optional<views::SimulationCosts> read_simulation_costs(
    Session& session, std::span<const lower::Override> overrides) {
  const Arguments& arguments = session.arguments();
  DiagnosticSink& sink = session.sink();
  views::SimulationCosts costs;
  if (!arguments.cost.empty()) service::read_costs(arguments.cost, costs.operations, sink);
  if (!arguments.kept_weights.empty())
    service::read_costs("w=" + arguments.kept_weights, costs.operations, sink);
  if (!arguments.kept_forward.empty())
    service::read_costs("keep=" + arguments.kept_forward, costs.operations, sink);
  if (!arguments.stages.empty())
    service::read_costs("stages=" + arguments.stages, costs.operations, sink);
  if (!arguments.costs_file.empty()) {
    costs.actions = service::read_cost_file(arguments.costs_file, session.console().files,
                                            session.context().locations.files(), sink);
  }
  if (!arguments.rates.empty()) {
    if (!costs.actions) costs.actions.emplace();
    service::read_rates(arguments.rates, costs.actions->rates, sink);
  }
  if (!arguments.machine.empty() && !sink.has_errors()) {
    costs.machine = service::read_machine(arguments.machine, overrides, session.console().files,
                                          session.context(), sink);
  }
  return sink.has_errors() ? std::nullopt : std::optional(std::move(costs));
}

void leave_to_machine(Session& session, const views::SimulationCosts& costs,
                      const std::string& name) {
  if (!costs.machine) return;
  const auto declared = session.compilation().declared(name);
  if (!declared) return;
  const std::vector<std::string>& params = costs.machine->params;
  std::vector<lower::Override> own = session.arguments().overrides;
  std::erase_if(own, [&](const lower::Override& each) {
    return !declared->takes(each.name) &&
           std::find(params.begin(), params.end(), each.name) != params.end();
  });
  session.compilation().set_overrides(std::move(own));
}

}  // namespace piper::tools
