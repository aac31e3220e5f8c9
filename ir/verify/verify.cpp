#include "ir/verify/verify.h"

#include "ir/verify/plan_facts.h"

namespace piper::verify {

bool verify(const dag::Dag& dag, DiagnosticSink& sink) {
  Facts facts(dag, sink);
  if (!check_tables(facts)) return false;
  check_flow(facts);
  if (!facts.ok()) return false;
  check_completeness(facts);
  if (dag.level >= Level::placed) check_placement(facts);
  if (dag.level >= Level::ordered && facts.ok()) check_order(facts);
  if (dag.level < Level::planned || !facts.ok()) return facts.ok();
  if (dag.plan == nullptr) {
    sink.report(Code::broken_dag, LocId(), "the DAG says level `planned` and has no plan");
    return false;
  }
  PlanFacts plan(facts);
  if (!check_plan_shape(plan) || !check_progress(plan)) return false;
  const HappensBefore before(plan);
  check_memory(plan, before);
  check_windows(plan, before);
  return facts.ok();
}

bool lint(const dag::Dag& dag, DiagnosticSink& sink) {
  if (dag.level < Level::planned || dag.plan == nullptr) return true;
  DiagnosticSink scratch(dag.context->locations);
  Facts facts(dag, scratch);
  if (!check_tables(facts)) return true;
  PlanFacts plan(facts);
  if (!check_plan_shape(plan) || !check_progress(plan)) return true;
  const HappensBefore before(plan);
  bool clean = true;
  std::size_t reported = 0;
  for (std::uint32_t a = 0; a < plan.role_of.size() && reported < 100; ++a) {
    const Action& action = plan.action(a);
    const std::uint32_t role = plan.role_of[a];
    const std::span<const dag::Wait> waits = plan.waits(a);
    for (std::size_t w = 0; w < waits.size(); ++w) {
      const std::size_t s = waits[w].stream.index();
      const auto size = static_cast<std::int32_t>(plan.stream_size[role * plan.num_streams() + s]);
      const std::int32_t wanted = static_cast<std::int32_t>(waits[w].position) + 1 - (waits[w].distance == 1 ? size : 0);
      // What the action knows without this wait: from its stream and its other waits.
      const auto known = [&](std::uint32_t b, bool previous) {
        const Action& other = plan.action(b);
        std::int32_t count = before.count(b, s);
        if (other.stream.index() == s) count = static_cast<std::int32_t>(other.position) + 1;
        return previous ? (count > 0 ? count - size : -size) >= wanted : count >= wanted;
      };
      const bool first = action.position == 0;
      const std::uint32_t last = plan.stream_size[plan.slot(role, action.stream)] - 1;
      bool implied = known(plan.at(role, action.stream, first ? last : action.position - 1), first);
      for (std::size_t other = 0; other < waits.size() && !implied; ++other) {
        if (other == w || (waits[other] == waits[w] && other > w)) continue;
        implied = known(plan.at(role, waits[other].stream, waits[other].position), waits[other].distance == 1);
      }
      if (!implied) continue;
      clean = false;
      ++reported;
      const std::uint32_t target = plan.at(role, waits[w].stream, waits[w].position);
      sink.report(Code::redundant_event, plan.loc(a), "`{}` waits for `{}`{}, which other events imply", plan.name(a), plan.name(target), waits[w].distance == 1 ? " of the step before" : "");
    }
  }
  return clean;
}

}  // namespace piper::verify
