#pragma once
// Tables about a plan that its checks share. Used inside ir/verify alone.

#include <memory>
#include <utility>
#include <vector>

#include "ir/verify/facts.h"

namespace piper::verify {

/// An action in the graph of progress and happens-before.
struct Step {
  std::uint32_t node = 0;
  std::uint32_t comm = kNone;  // none: no communication
  // Index of its stream among the role's streams, in the order of their first actions.
  std::uint32_t lane = 0;
  std::uint32_t position = 0;  // in its stream
};

/// One stream of one role.
struct Lane {
  dag::StreamId stream;
  std::uint32_t size = 0;   // number of actions
  std::uint32_t first = 0;  // into PlanFacts::action_at
};

/// Actions are numbered over all roles: action i of role r is first_action[r] + i.
struct PlanFacts {
  explicit PlanFacts(Facts& facts) : facts(facts), plan(*facts.dag.plan) {}

  Facts& facts;
  const dag::Plan& plan;
  std::vector<std::uint32_t> first_action;  // per role, one more
  std::vector<std::uint32_t> role_of;       // per action
  std::vector<Step> steps;                  // per action
  std::vector<std::uint32_t> first_lane;    // per role, one more
  std::vector<Lane> lanes;
  std::vector<std::uint32_t> action_at;     // actions by lane and position
  std::vector<std::uint32_t> first_target;  // per action, one more
  // The action that each wait names, in the order of the waits.
  std::vector<std::uint32_t> targets;
  // Sorted: nodes (later, earlier) of temporal edges that the global order does not imply.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> issued_after;
  // All actions, role by role, each role's in an order in which they can end.
  std::vector<std::uint32_t> ended;

  const dag::Role& role(std::uint32_t action) const { return plan.roles[role_of[action]]; }
  const Action& action(std::uint32_t id) const {
    return plan.roles[role_of[id]].actions[id - first_action[role_of[id]]];
  }
  const Lane& lane(std::uint32_t id) const {
    return lanes[first_lane[role_of[id]] + steps[id].lane];
  }
  /// The previous action of its stream; for the first one, the last action of the previous step.
  std::uint32_t before(std::uint32_t id) const {
    const Lane& own = lane(id);
    return action_at[own.first + (steps[id].position == 0 ? own.size : steps[id].position) - 1];
  }
  std::span<const dag::Wait> waits(std::uint32_t id) const {
    const Action& a = action(id);
    return {role(id).waits.data() + a.first_wait, a.num_waits};
  }
  std::span<const std::uint32_t> ended_of(std::uint32_t role) const {
    return std::span(ended).subspan(first_action[role],
                                    first_action[role + 1] - first_action[role]);
  }
  std::string name(std::uint32_t id) const { return facts.name(action(id).node); }
  LocId loc(std::uint32_t id) const { return facts.loc(action(id).node); }
};

/// For the actions of one role at a time: per stream of the role how many of its actions have ended
/// when the action starts. A count c > 0 means c of this step, c <= 0 means size + c of the step
/// before.
class HappensBefore {
 public:
  explicit HappensBefore(const PlanFacts& plan) : plan_(plan) {}
  /// Computes the counts of this role. `plan.ended` must be filled by the check of progress.
  void set_role(std::uint32_t role);
  /// The counts of an action, by lane.
  const std::int32_t* row(std::uint32_t action) const {
    return counts_.data() + std::size_t{action - first_} * width_;
  }
  /// The length of a row: the lanes, and padding.
  std::size_t width() const { return width_; }
  /// Action b ended before a starts: b of the same step, or of the step before when `previous`.
  bool ended_before(std::uint32_t b, std::uint32_t a, bool previous) const {
    const auto end = static_cast<std::int32_t>(plan_.steps[b].position) + 1;
    return row(a)[plan_.steps[b].lane] >=
           (previous ? end - static_cast<std::int32_t>(plan_.lane(b).size) : end);
  }

 private:
  const PlanFacts& plan_;
  std::uint32_t first_ = 0;
  std::size_t width_ = 0;
  std::vector<std::int32_t> counts_;
  std::vector<std::int32_t> sizes_;  // per lane
};

/// The reads and writes of one role in issue order, copied from the DAG's tables into compact ones.
class RoleView {
 public:
  struct Port {
    std::uint32_t edge = 0;  // its source, in the edge pool
    // The output that it reads; kNone: a parameter without an update in this program.
    std::uint32_t output = kNone;
    dag::EdgeClass cls = dag::EdgeClass::data;
  };
  struct Entry {
    std::uint32_t node = 0, body = kNone, bucket = kNone;
    std::uint32_t first_port = 0;  // of `ports`, up to those of the next entry
    std::uint32_t first_output = 0, num_outputs = 0;
    std::uint32_t first_reader = kNone;  // of a recv: the first action that reads it
    NodeKind kind = NodeKind::chunk;
  };

  explicit RoleView(const PlanFacts& plan)
      : plan_(plan), local_(plan.facts.dag.nodes.size(), kNone) {}
  void set_role(std::uint32_t role);
  std::uint32_t number() const { return number_; }
  const dag::Role& role() const { return plan_.plan.roles[number_]; }
  std::size_t size() const { return entries_.size() - 1; }
  /// The role's action of a node; kNone if it has none.
  std::uint32_t action_of(std::uint32_t node) const {
    return local_[node] < size() && entries_[local_[node]].node == node ? local_[node] : kNone;
  }
  const Entry& entry(std::size_t local) const { return entries_[local]; }
  std::span<const Port> ports(std::size_t local) const {
    return std::span(ports_).subspan(entries_[local].first_port,
                                     entries_[local + 1].first_port - entries_[local].first_port);
  }
  std::int64_t bytes(const Entry& entry, std::size_t port, const Port& read) const;

 private:
  const PlanFacts& plan_;
  std::uint32_t number_ = 0;
  // Per node: the role's action; stays valid for a role's own nodes alone.
  std::vector<std::uint32_t> local_;
  std::vector<Entry> entries_;  // per action, one more
  std::vector<Port> ports_;
};

/// The windows that receivers need, collected role by role.
struct ReceiveWindows {
  explicit ReceiveWindows(const PlanFacts& plan)
      : min_windows(plan.plan.communicators.size(), 1), far(min_windows.size()) {}
  std::vector<std::uint32_t> min_windows;                    // per communicator
  std::vector<std::pair<std::uint32_t, std::uint32_t>> far;  // the two messages that require it
};

/// In-place sums and their terms.
struct Sums {
  explicit Sums(const Facts& facts);
  // Per output that is a sum, or a term of one: the sum's output; kNone: neither.
  std::vector<std::uint32_t> sum_of;
  // Per output: the number of a term; for a sum, the number of its terms.
  std::vector<std::uint32_t> place;
};

/// Roles cover the mesh; each has exactly the actions of its devices; streams and communicators
/// fit. Fills the tables. False: the plan is too broken for the other checks.
bool check_plan_shape(PlanFacts& plan);
/// Every rank's issue order follows the global order, in which a communication is one point, and
/// waits look back: then there is no deadlock, and actions can end in issue order. Fills `ended`.
/// False proves nothing.
bool follows_global_order(PlanFacts& plan);
/// There is no deadlock. Fills `ended`. False after a report.
bool check_progress(PlanFacts& plan);
/// Operands of one role: their number, inside their buffers, buffers inside the arena.
void check_operands(const PlanFacts& plan, const RoleView& view, Reports reports);
/// State of one role: the buffers of its buckets and their places in updates. Its operands must
/// fit.
void check_state(const PlanFacts& plan, const RoleView& view, Reports reports);
/// The maximum of live bytes of a role that passed all other checks: the largest sum of sizes, in
/// steps of 64, at one action in issue order. State is always live, a workspace during its action,
/// any other buffer from the first to the last action that names it.
void check_live_bytes(const PlanFacts& plan, const RoleView& view, Reports reports);
/// Data races, values and accumulation over two steps, role by role.
class MemoryCheck {
 public:
  MemoryCheck(const PlanFacts& plan, const Sums& sums, Reports reports);
  ~MemoryCheck();
  void check(const RoleView& view, const HappensBefore& before);

 private:
  class RoleMemory;
  std::unique_ptr<RoleMemory> memory_;
};
/// No receive of one role is posted before its window allows; collects the windows that its
/// messages need.
void check_windows(const PlanFacts& plan, const RoleView& view, const HappensBefore& before,
                   ReceiveWindows& windows, Reports reports);
/// The role's streams and waits keep the temporal edges of `issued_after`.
void check_issue_points(const PlanFacts& plan, const RoleView& view, const HappensBefore& before,
                        Reports reports);
/// The minimum window of every communicator is the one that its messages need, and its window is
/// not smaller.
void check_min_windows(const PlanFacts& plan, const ReceiveWindows& windows, Reports reports);

}  // namespace piper::verify
