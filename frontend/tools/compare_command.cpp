#include <algorithm>

#include "frontend/pictures/timeline_page.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/simulation.h"
#include "frontend/views/comparison.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::tools {

int run_compare(Console& console, const Arguments& arguments) {
  const bool json = arguments.format == "json";
  std::list<Session> sessions;
  std::list<views::Compared> all;
  std::vector<bool> taken(arguments.overrides.size(), false);
  bool complete = true;
  const std::vector<views::Sizes> sweep = views::sweep(arguments.overrides);
  // A machine may have sizes of the sweep, too: it is another one at each.
  std::vector<views::SimulationCosts> costs;
  for (const views::Sizes& sizes : sweep) {
    auto read = read_simulation_costs(sessions.emplace_back(console, arguments), sizes.overrides);
    if (!read) return sessions.back().finish();
    costs.push_back(std::move(*read));
  }
  for (const std::string& word : arguments.positional) {
    for (std::size_t i = 0; i < sweep.size(); ++i) {
      const views::Sizes& sizes = sweep[i];
      Session& session = sessions.emplace_back(console, arguments);
      const auto [input, name] = views::taken_apart(word);
      const views::Look look{
          input, name, word + sizes.name, costs[i], sizes.overrides, arguments.format == "html"};
      auto compared = views::look_at(session.compilation(), look, taken, session.sink());
      if (compared) all.push_back(std::move(*compared));
      complete = complete && !session.sink().has_errors();
      if (json && !complete) return session.finish();  // the one object that is printed
      session.finish();
    }
  }
  Session& last = sessions.back();
  for (std::size_t i = 0; costs.front().machine && i < taken.size(); ++i) {
    const std::vector<std::string>& params = costs.front().machine->params;
    taken[i] = taken[i] ||
               std::find(params.begin(), params.end(), arguments.overrides[i].name) != params.end();
  }
  for (std::size_t i = 0; complete && i < taken.size(); ++i) {
    if (taken[i]) continue;
    last.sink().report(Code::override_unknown, SourceRange(),
                       "`-D {}` names a parameter that no compared program has",
                       arguments.overrides[i].name);
    return last.finish();
  }
  if (all.empty()) return kDiagnostics;
  for (Session& session : sessions) last.inputs().add_sources(session.context().locations.files());
  for (const views::Compared& row : all) last.inputs().add_data(row.settings);
  std::string text;
  if (json) {
    llvm::raw_string_ostream(text)
        << llvm::json::Value(
               llvm::json::Object{{"schema", 1}, {"schedules", views::comparison_json(all)}})
        << "\n";
  } else if (arguments.format == "html") {
    std::vector<pictures::Picture> pictures;
    for (views::Compared& each : all) pictures.push_back(std::move(*each.picture));
    text = pictures::timeline_page(pictures);
  } else {
    text = views::comparison_text(all);
  }
  last.write(text);
  return complete ? last.finish() : static_cast<int>(kDiagnostics);
}

}  // namespace piper::tools
