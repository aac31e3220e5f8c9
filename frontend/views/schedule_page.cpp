#include "frontend/views/schedule_page.h"

#include <algorithm>
#include <sstream>

#include "frontend/views/orders_view.h"
#include "frontend/views/simulate_view.h"
#include "passes/simulate/lower_bounds.h"

namespace piper::views {
namespace {

/// Wider grids are left to `show grid`.
constexpr std::size_t kWidestGrid = 200;

/// The comment above a schedule without its grid, which is of other sizes: from the line of the
/// command up to the next empty one.
std::string prose(const std::string& doc) {
  std::istringstream lines(doc);
  std::string text;
  bool grid = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    grid = first != std::string::npos && (grid || line.substr(first).starts_with("$ "));
    if (!grid)
      text +=
          (first == std::string::npos ? "" : line.substr(std::min<std::size_t>(first, 1))) + "\n";
  }
  return text;
}

/// Those given, and 4 for each other axis, 8 for each other number.
std::vector<lower::Override> sizes_of(const service::Declared& declared,
                                      std::span<const lower::Override> given) {
  std::vector<lower::Override> sizes(given.begin(), given.end());
  for (const service::Declared::Parameter& parameter : declared.parameters) {
    const bool known = std::any_of(
        given.begin(), given.end(),
        [&](const lower::Override& override) { return override.name == parameter.name; });
    if (!known && !parameter.has_default)
      sizes.push_back({parameter.name, parameter.is_axis ? "4" : "8"});
  }
  return sizes;
}

std::string text_of(std::span<const lower::Override> sizes) {
  std::string text;
  for (const lower::Override& size : sizes)
    text += (text.empty() ? "" : " ") + size.name + "=" + size.value;
  return text;
}

bool fits(const std::string& grid) {
  std::istringstream lines(grid);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > kWidestGrid) return false;
  }
  return true;
}

/// The schedule and all others that have such sizes.
void look_at_all(const source::FileSystem& files, std::span<const std::string> schedules,
                 const SimulationCosts& costs, const Cancellation* cancellation,
                 SchedulePage& page) {
  const auto look = [&](const std::string& other) {
    service::Compilation compilation(files);
    compilation.context().cancellation = cancellation;
    DiagnosticSink sink(compilation.context().locations);
    std::vector<bool> taken(page.sizes.size(), false);
    auto compared = look_at(compilation, {other, "", other, costs, page.sizes}, taken, sink);
    if (compared) {
      page.all.push_back(std::move(*compared));
      return;
    }
    const std::vector<Diagnostic> reported = sink.sorted();
    page.without +=
        "without " + other + (reported.empty() ? "" : ": " + reported.front().message) + "\n";
  };
  look(page.name);
  for (const std::string& other : schedules) {
    if (other != page.name) look(other);
  }
}

}  // namespace

std::optional<SchedulePage> schedule_page(const source::FileSystem& files, const std::string& name,
                                          std::span<const lower::Override> given,
                                          const SimulationCosts& costs, DiagnosticSink& sink,
                                          service::Compilation& compilation) {
  if (!compilation.open(name, sink)) return std::nullopt;
  const auto declared = compilation.declared(name);
  if (!declared) return std::nullopt;
  SchedulePage page{
      .name = name, .sizes = sizes_of(*declared, given), .prose = prose(declared->doc)};
  compilation.set_overrides(page.sizes);
  auto subject = compilation.subject(name, false, sink);
  if (!subject) return std::nullopt;
  const auto dag = compilation.compile(*subject, {}, sink);
  if (!dag) return std::nullopt;
  const auto timeline = simulate(costs, *dag, sink);
  if (!timeline) return std::nullopt;
  page.figures = figures_text(*timeline, passes::lower_bounds(*timeline, costs.operations));
  page.grid = grid_text(passes::orders_table(*dag), *dag, {}, costs);
  look_at_all(files, compilation.library_schedules(), costs, compilation.context().cancellation,
              page);
  return page;
}

std::string schedule_page_text(const SchedulePage& page, const std::string& draw) {
  std::string text = "# " + page.name + "\n\n" + page.prose + "\n## At " + text_of(page.sizes) +
                     "\n\n" + page.figures + "\n";
  text += fits(page.grid) ? page.grid : "`" + draw + "` draws it.\n";
  return text + "\n## Beside the others\n\n" + comparison_text(page.all) + page.without;
}

}  // namespace piper::views
