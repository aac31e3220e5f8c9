#include "frontend/tools/explain_schedule.h"

#include <algorithm>
#include <sstream>

#include "frontend/tools/comparison.h"
#include "frontend/tools/orders_view.h"
#include "frontend/tools/session.h"
#include "frontend/tools/simulate_view.h"
#include "frontend/tools/simulation.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::tools {
namespace {

/// Wider grids are left to `show grid`.
constexpr std::size_t kWidestGrid = 200;

/// The comment above a schedule without its grid, which is of other sizes: from the line of the command up to the next empty one.
std::string prose(const std::string& doc) {
  std::istringstream lines(doc);
  std::string text;
  bool grid = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    grid = first != std::string::npos && (grid || line.substr(first).starts_with("$ "));
    if (!grid) text += (first == std::string::npos ? "" : line.substr(std::min<std::size_t>(first, 1))) + "\n";
  }
  return text;
}

/// Those given, and 4 for each other axis, 8 for each other number.
std::vector<lower::Override> sizes_of(const service::Declared& declared, std::span<const lower::Override> given) {
  std::vector<lower::Override> sizes(given.begin(), given.end());
  for (const service::Declared::Parameter& parameter : declared.parameters) {
    const bool known = std::any_of(given.begin(), given.end(), [&](const lower::Override& override) { return override.name == parameter.name; });
    if (!known && !parameter.has_default) sizes.push_back({parameter.name, parameter.is_axis ? "4" : "8"});
  }
  return sizes;
}

std::string text_of(std::span<const lower::Override> sizes) {
  std::string text;
  for (const lower::Override& size : sizes) text += (text.empty() ? "" : " ") + size.name + "=" + size.value;
  return text;
}

bool fits(const std::string& grid) {
  std::istringstream lines(grid);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > kWidestGrid) return false;
  }
  return true;
}

/// What is told of one schedule.
struct Told {
  std::string page, figures, grid;
};

std::optional<Told> tell(Session& session, const std::string& name, const service::Declared& declared, std::span<const lower::Override> sizes) {
  const auto costs = read_simulation_costs(session);
  if (!costs) return std::nullopt;
  session.compilation().set_overrides({sizes.begin(), sizes.end()});
  auto subject = session.subject(name, false);
  if (!subject) return std::nullopt;
  const std::vector<directive::Directive> directives = subject->lowered.strategy.directives;
  const auto dag = session.compile(*subject, dag::Level::planned);
  if (!dag) return std::nullopt;
  const auto timeline = simulate(session, *costs, *dag, directives);
  if (!timeline) return std::nullopt;
  return Told{prose(declared.doc), figures_text(*timeline), grid_text(passes::orders_table(*dag, passes::partition_name(directives)), *dag, {})};
}

/// The schedule and all others that have such sizes. `without`: the others, and why.
std::list<Compared> beside_others(Console& console, const Arguments& arguments, const std::string& name, std::span<const std::string> schedules, std::span<const lower::Override> sizes,
                                  std::string& without) {
  std::list<Compared> all;
  const auto look = [&](const std::string& other) {
    Session session(console, arguments);
    std::vector<bool> taken(sizes.size(), false);
    auto compared = look_at(session, other, sizes, taken);
    if (compared) {
      all.push_back(std::move(*compared));
      return;
    }
    const std::vector<Diagnostic> told = session.sink().sorted();
    without += "without " + other + (told.empty() ? "" : ": " + told.front().message) + "\n";
  };
  look(name);
  for (const std::string& other : schedules) {
    if (other != name) look(other);
  }
  return all;
}

}  // namespace

int explain_schedule(Console& console, const Arguments& arguments, const std::string& name) {
  Session session(console, arguments);
  if (!session.open(name)) return session.finish();
  const auto declared = session.compilation().declared(name);
  if (!declared) return session.finish();
  const std::vector<lower::Override> sizes = sizes_of(*declared, arguments.overrides);
  const auto told = tell(session, name, *declared, sizes);
  if (!told) return session.finish();
  std::string without;
  const std::vector<std::string> schedules = session.compilation().library_schedules();
  const std::list<Compared> all = beside_others(console, arguments, name, schedules, sizes, without);
  if (arguments.format == "json") {
    llvm::json::Object object{{"schema", 1}, {"schedule", name}, {"page", told->page}, {"grid", told->grid}, {"schedules", comparison_json(all)}};
    llvm::json::Object given;
    for (const lower::Override& size : sizes) given[size.name] = size.value;
    object["sizes"] = std::move(given);
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object)) << "\n";
    session.write(text);
    return session.finish();
  }
  std::string options;
  for (const lower::Override& size : sizes) options += " -D " + size.name + "=" + size.value;
  std::string text = "# " + name + "\n\n" + told->page + "\n## At " + text_of(sizes) + "\n\n" + told->figures + "\n";
  text += fits(told->grid) ? told->grid : "`piper show grid " + name + options + "` draws it.\n";
  text += "\n## Beside the others\n\n" + comparison_text(all) + without;
  session.write(text);
  return session.finish();
}

}  // namespace piper::tools
