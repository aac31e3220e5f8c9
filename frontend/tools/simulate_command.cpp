#include "frontend/tools/commands.h"
#include "frontend/tools/simulation.h"
#include "frontend/views/comparison.h"
#include "frontend/views/simulate_view.h"
#include "passes/simulate/lower_bounds.h"

namespace piper::tools {

int run_simulate(Console& console, const Arguments& arguments) {
  Session session(console, arguments);
  const auto costs = read_simulation_costs(session);
  if (!costs || !session.open(arguments.positional[0])) return session.finish();
  const auto print = [&](const dag::Dag& dag) {
    const auto timeline = views::simulate(*costs, dag, session.sink());
    if (!timeline) return;
    const LocationTable& locations = session.context().locations;
    const auto bounds = passes::lower_bounds(*timeline, costs->operations);
    session.write(arguments.format == "json"
                      ? views::simulation_json(*timeline, bounds, locations)
                      : views::simulation_text(*timeline, bounds, locations));
    const std::string planned = directive::planned_for(dag.settings.device);
    if (costs->of_plan() && !planned.empty() && arguments.format != "json")
      session.write("bytes and seconds" + planned + "\n");
  };
  if (const dag::Dag* dag = session.compilation().pir()) {
    if (dag->level < costs->needed()) {
      session.sink().report(
          Code::level_too_low, SourceRange(),
          "`simulate` needs a DAG at level `{}` here, and the file is at level `{}`",
          dag::level_name(costs->needed()), dag::level_name(dag->level));
    } else {
      print(*dag);
    }
    return session.finish();
  }
  const std::string name = arguments.positional.size() > 1 ? arguments.positional[1] : "";
  leave_to_machine(session, *costs, name);
  auto subject = session.subject(name, false);
  if (!subject) return session.finish();
  if (const auto dag = session.compile(*subject, dag::Level::planned)) print(*dag);
  if (!subject->is_train && costs->of_plan() && arguments.format != "json")
    session.write(views::of_small_model(passes::Timeline::Unit::seconds));
  return session.finish();
}

}  // namespace piper::tools
