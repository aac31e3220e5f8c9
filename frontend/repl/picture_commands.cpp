// Commands that draw a train or schedule.

#include "frontend/pictures/memory_view.h"
#include "frontend/pictures/timeline_text.h"
#include "frontend/pictures/traffic_view.h"
#include "frontend/repl/command_functions.h"
#include "frontend/repl/session.h"
#include "frontend/views/comparison.h"
#include "frontend/views/orders_view.h"
#include "frontend/views/simulate_view.h"
#include "passes/simulate/lower_bounds.h"

namespace piper::repl {
namespace {

/// Draws a subject from its plan and its orders with `text`.
template <typename Draw>
bool draw(Session& session, const Words& words, dag::Level level, const Draw& text) {
  const std::optional<Chosen> chosen = session.choose(words.first());
  if (!chosen) return false;
  const std::shared_ptr<const service::Plan> plan = session.plan(*chosen, level);
  if (plan == nullptr) return false;
  const std::optional<std::string> drawn = text(*chosen, *plan);
  if (drawn) session.show(chosen->title() + "\n" + *drawn);
  return drawn.has_value();
}

/// The same for a simulated timeline.
template <typename Draw>
bool draw_simulated(Session& session, const Words& words, dag::Level level, const Draw& text) {
  const std::optional<Chosen> chosen = session.choose(words.first());
  if (!chosen) return false;
  auto simulated = session.simulate(*chosen, level);
  if (!simulated) return false;
  session.show(chosen->title() + "\n" + text(*chosen, *simulated));
  return true;
}

}  // namespace

bool grid(Session& session, const Words& words) {
  return draw(session, words, dag::Level::ordered, [&](const Chosen&, const service::Plan& plan) {
    return std::optional(views::grid_text(passes::orders_table(plan.dag), plan.dag,
                                          session.screen(), session.costs()));
  });
}

bool orders(Session& session, const Words& words) {
  return draw(session, words, dag::Level::ordered, [](const Chosen&, const service::Plan& plan) {
    return std::optional(views::orders_text(passes::orders_table(plan.dag)));
  });
}

bool timeline(Session& session, const Words& words) {
  return draw_simulated(session, words, dag::Level::ordered,
                        [&](const Chosen& chosen, Session::Simulated& simulated) {
                          const Shown shown = session.shown(chosen);
                          return pictures::timeline_text(
                              pictures::make_picture(chosen.title(), std::move(simulated.timeline),
                                                     &simulated.plan->dag, shown.locations()),
                              session.screen());
                        });
}

bool simulate(Session& session, const Words& words) {
  return draw_simulated(session, words, dag::Level::planned,
                        [&](const Chosen& chosen, Session::Simulated& simulated) {
                          const auto bounds =
                              passes::lower_bounds(simulated.timeline, session.costs().operations);
                          return views::simulation_text(simulated.timeline, bounds,
                                                        session.shown(chosen).locations());
                        });
}

bool memory(Session& session, const Words& words) {
  return draw(session, words, dag::Level::planned, [](const Chosen&, const service::Plan& plan) {
    return std::optional(pictures::memory_text(passes::memory_table(plan.dag), plan.dag));
  });
}

bool comm(Session& session, const Words& words) {
  return draw(session, words, dag::Level::planned, [](const Chosen&, const service::Plan& plan) {
    return std::optional(pictures::traffic_text(passes::traffic_table(plan.dag), plan.dag));
  });
}

bool compare(Session& session, const Words& words) {
  std::list<views::Compared> all;
  for (const std::string& name : words.plain) {
    const std::optional<Chosen> chosen = session.choose(name);
    if (!chosen) return false;
    auto simulated = session.simulate(*chosen, dag::Level::planned);
    if (!simulated) return false;
    std::string_view declaration;
    session.during(*chosen, [&](service::Compilation& compilation, DiagnosticSink&) {
      declaration = views::declaration_text(compilation, chosen->name);
    });
    all.push_back(views::compared(chosen->title(), std::move(simulated->timeline),
                                  simulated->plan->dag, declaration));
    all.back().by_itself = !chosen->is_train;
  }
  session.show(views::comparison_text(all));
  return true;
}

}  // namespace piper::repl
