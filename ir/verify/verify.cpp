#include "ir/verify/verify.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <mutex>

#include "ir/parallel.h"
#include "llvm/ADT/ScopeExit.h"
#include "ir/verify/plan_facts.h"

namespace piper::verify {

namespace {

/// Checks the nodes and edges of a level, without the plan.
bool check_graph(Facts& facts) {
  check_header(facts);
  check_layouts(facts);
  if (facts.ok()) check_completeness(facts);
  if (facts.ok()) check_gradients(facts);
  if (facts.ok()) check_instances(facts);
  if (facts.ok()) check_gather_intervals(facts);
  if (facts.ok()) check_counts(facts);
  if (facts.dag.level >= Level::placed) check_placement(facts);
  if (facts.dag.level >= Level::ordered && facts.ok()) check_order(facts);
  // For a plan the actions are checked instead.
  if (facts.dag.level == Level::ordered && facts.ok()) check_issue_order(facts);
  if (facts.ok()) check_claims(facts);
  if (facts.ok()) check_ports(facts);
  if (facts.ok()) check_recompute(facts);
  if (facts.ok()) check_owners(facts);
  if (facts.ok()) check_bodies(facts);
  return facts.ok();
}

/// Checks of one role at a time, once its operands fit.
class RoleChecks {
 public:
  struct Check {
    void (RoleChecks::*run)();
    bool of_right_plans;  // it adds no information if the plan has other errors
  };
  /// The list of these checks: `roles_hold` runs them without reports, `notify_roles` reports
  /// errors, one check after the other.
  static const std::array<Check, 3> kAll;

  RoleChecks(const PlanFacts& plan, const Sums& sums, Reports reports)
      : plan_(plan),
        reports_(reports),
        view_(plan),
        before_(plan),
        memory_(plan, sums, reports),
        windows_(plan) {}

  void set_role(std::uint32_t role) {
    view_.set_role(role);
    before_.set_role(role);
  }
  void contents() { memory_.check(view_, before_); }
  void issue() {
    check_windows(plan_, view_, before_, windows_, reports_);
    check_issue_points(plan_, view_, before_, reports_);
  }
  void live_bytes() { check_live_bytes(plan_, view_, reports_); }

  const RoleView& view() const { return view_; }
  /// The windows that `issue` collected.
  const ReceiveWindows& windows() const { return windows_; }

 private:
  const PlanFacts& plan_;
  Reports reports_;
  RoleView view_;
  HappensBefore before_;
  MemoryCheck memory_;
  ReceiveWindows windows_;
};
constexpr std::array<RoleChecks::Check, 3> RoleChecks::kAll = {
    {{&RoleChecks::contents, false}, {&RoleChecks::issue, false}, {&RoleChecks::live_bytes, true}}};

/// Whether the operands and state of one role fit; a precondition of its other checks.
bool operands_fit(const PlanFacts& plan, const RoleView& view, Reports reports) {
  const std::size_t errors = reports.sink.error_count();
  check_operands(plan, view, reports);
  if (reports.sink.error_count() == errors) check_state(plan, view, reports);
  return reports.sink.error_count() == errors;
}

bool operands_fit(const PlanFacts& plan, Reports reports) {
  RoleView view(plan);
  for (std::uint32_t r = 0; r < plan.plan.roles.size() && !reports.enough(); ++r) {
    view.set_role(r);
    operands_fit(plan, view, reports);
  }
  return reports.ok();
}

/// All checks of roles, without reports. Roles are independent, so several threads run them.
bool roles_hold(const PlanFacts& plan, const Sums& sums) {
  const std::size_t roles = plan.plan.roles.size();
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> good = true;
  std::mutex mutex;
  ReceiveWindows windows(plan);
  run_workers(workers_for(roles, plan.steps.size()), [&] {
    DiagnosticSink scratch(plan.facts.dag.context->locations);
    const Reports reports{scratch, 0};
    RoleChecks checks(plan, sums, reports);
    for (std::size_t r; good && (r = next++) < roles;) {
      checks.set_role(static_cast<std::uint32_t>(r));
      if (operands_fit(plan, checks.view(), reports)) {
        for (const RoleChecks::Check& check : RoleChecks::kAll) (checks.*check.run)();
      }
      if (!reports.ok()) good = false;
    }
    const std::lock_guard lock(mutex);
    for (std::size_t c = 0; c < windows.min_windows.size(); ++c)
      windows.min_windows[c] = std::max(windows.min_windows[c], checks.windows().min_windows[c]);
  });
  DiagnosticSink scratch(plan.facts.dag.context->locations);
  const Reports reports{scratch, 0};
  if (good) check_min_windows(plan, windows, reports);
  return good && reports.ok();
}

/// Whether there are no errors, without reports. Checks follow the plan's own order, and
/// independent checks run concurrently. Errors are reported by a second run, one check after the
/// other, in an order that depends only on the DAG.
bool holds(const Facts& facts) {
  const Dag& dag = facts.dag;
  DiagnosticSink dag_sink(dag.context->locations), plan_sink(dag.context->locations);
  Facts dag_facts(facts, dag_sink), plan_facts(facts, plan_sink);
  PlanFacts plan(plan_facts);
  bool flow_holds = false, graph_holds = false, plan_holds = false;
  // The first of the two never waits for the second; the second also wakes if the first throws.
  std::latch flow_checked(1);
  const auto flow = [&] {
    const auto tell = llvm::make_scope_exit([&] { flow_checked.count_down(); });
    check_flow(dag_facts);
    flow_holds = dag_facts.ok();
  };
  const auto graph = [&] {
    flow();
    graph_holds = flow_holds && check_graph(dag_facts);
  };
  const auto roles = [&] {
    if (!check_plan_shape(plan) || !follows_global_order(plan)) return;
    const Sums sums(plan_facts);
    flow_checked.wait();
    plan_holds = flow_holds && roles_hold(plan, sums);
  };
  run_both(dag.nodes.size(), graph, roles);
  return graph_holds && plan_holds;
}

/// The same checks one after the other, each over all roles.
bool notify_roles(PlanFacts& plan, const Sums& sums) {
  const Reports reports = plan.facts.reports();
  if (!operands_fit(plan, reports) || !check_progress(plan)) return false;
  // Here ranks need not issue their actions in the global order, so it implies no temporal edge.
  plan.issued_after.clear();
  for (const auto& [before, after] : plan.facts.dag.temporal)
    plan.issued_after.emplace_back(after.value(), before.value());
  std::sort(plan.issued_after.begin(), plan.issued_after.end());
  RoleChecks checks(plan, sums, reports);
  for (const RoleChecks::Check& check : RoleChecks::kAll) {
    if (check.of_right_plans && !reports.ok()) break;
    for (std::uint32_t r = 0; r < plan.plan.roles.size() && !reports.enough(); ++r) {
      checks.set_role(r);
      (checks.*check.run)();
    }
  }
  check_min_windows(plan, checks.windows(), reports);
  return reports.ok();
}

}  // namespace

bool verify(const dag::Dag& dag, DiagnosticSink& sink) {
  Facts facts(dag, sink);
  if (!check_tables(facts)) return false;
  const bool planned = dag.level >= Level::planned && dag.plan != nullptr;
  if (planned && facts.tables->all_on_devices_and_streams && holds(facts)) {
    check_measures(facts);
    return facts.ok();
  }

  check_flow(facts);
  if (!facts.ok()) return false;
  if (!check_graph(facts) || dag.level < Level::planned) return facts.ok();
  if (!planned) {
    sink.report(Code::broken_dag, LocId(), "the DAG has level `planned` but no plan");
    return false;
  }
  PlanFacts plan(facts);
  if (!check_plan_shape(plan) || !notify_roles(plan, Sums(facts))) return false;
  check_measures(facts);
  return facts.ok();
}

bool lint(const dag::Dag& dag, DiagnosticSink& sink) {
  if (dag.level < Level::planned || dag.plan == nullptr) return true;
  DiagnosticSink scratch(dag.context->locations);
  Facts facts(dag, scratch);
  if (!check_tables(facts)) return true;
  check_flow(facts);
  PlanFacts plan(facts);
  if (!facts.ok() || !check_plan_shape(plan) || !operands_fit(plan, facts.reports()) ||
      !check_progress(plan))
    return true;
  HappensBefore before(plan);
  bool clean = true;
  std::size_t reported = 0;
  for (std::uint32_t a = 0; a < plan.steps.size() && reported < 100; ++a) {
    if (a == plan.first_action[plan.role_of[a]]) before.set_role(plan.role_of[a]);
    const std::span<const dag::Wait> waits = plan.waits(a);
    const std::uint32_t* const targets = plan.targets.data() + plan.first_target[a];
    for (std::size_t w = 0; w < waits.size(); ++w) {
      const std::uint32_t target = targets[w];
      const auto size = static_cast<std::int32_t>(plan.lane(target).size);
      const std::int32_t wanted =
          static_cast<std::int32_t>(waits[w].position) + 1 - (waits[w].distance == 1 ? size : 0);
      // The ends that the action is ordered after without this wait: by its stream and its other
      // waits.
      const auto known = [&](std::uint32_t b, bool previous) {
        std::int32_t count = before.row(b)[plan.steps[target].lane];
        if (plan.steps[b].lane == plan.steps[target].lane)
          count = static_cast<std::int32_t>(plan.steps[b].position) + 1;
        return previous ? (count > 0 ? count - size : -size) >= wanted : count >= wanted;
      };
      bool implied = known(plan.before(a), plan.steps[a].position == 0);
      for (std::size_t other = 0; other < waits.size() && !implied; ++other) {
        if (other == w || (waits[other] == waits[w] && other > w)) continue;
        implied = known(targets[other], waits[other].distance == 1);
      }
      if (!implied) continue;
      clean = false;
      ++reported;
      sink.report(Code::redundant_event, plan.loc(a),
                  "`{}` waits for `{}`{}, which other events imply", plan.name(a),
                  plan.name(target), waits[w].distance == 1 ? " of the step before" : "");
    }
  }
  return clean;
}

}  // namespace piper::verify
