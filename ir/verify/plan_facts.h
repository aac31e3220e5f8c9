#pragma once
// Tables about a plan that its checks share. Used inside ir/verify alone.

#include <vector>

#include "ir/verify/facts.h"

namespace piper::verify {

/// Actions of all roles are numbered through: role r's action i is first_action[r] + i.
struct PlanFacts {
  explicit PlanFacts(Facts& facts) : facts(facts), plan(*facts.dag.plan) {}

  Facts& facts;
  const dag::Plan& plan;
  std::vector<std::uint32_t> first_action;       // per role, one more
  std::vector<std::uint32_t> role_of;            // per action
  std::vector<std::uint32_t> stream_first;       // per role: into stream_size; the role's streams are numbered as the DAG's
  std::vector<std::uint32_t> stream_size;        // per (role, stream): number of actions
  std::vector<std::uint32_t> action_at;          // actions by (role, stream, position)
  std::vector<std::uint32_t> action_at_first;    // per (role, stream): into action_at
  std::vector<std::uint32_t> ended;              // all actions in an order in which they can end; filled by check_progress

  std::size_t num_streams() const { return facts.dag.streams.size(); }
  const dag::Role& role(std::uint32_t action) const { return plan.roles[role_of[action]]; }
  const Action& action(std::uint32_t id) const { return plan.roles[role_of[id]].actions[id - first_action[role_of[id]]]; }
  std::size_t slot(std::uint32_t role, dag::StreamId stream) const { return role * num_streams() + stream.index(); }
  std::uint32_t at(std::uint32_t role, dag::StreamId stream, std::uint32_t position) const {
    return action_at[action_at_first[slot(role, stream)] + position];
  }
  std::span<const dag::Wait> waits(std::uint32_t id) const {
    const Action& a = action(id);
    return {role(id).waits.data() + a.first_wait, a.num_waits};
  }
  std::string name(std::uint32_t id) const { return facts.name(action(id).node); }
  LocId loc(std::uint32_t id) const { return facts.loc(action(id).node); }
};

/// Per action and stream of its role: how many actions of that stream have ended when it starts. A count c > 0 means c of this step, c <= 0
/// means size + c of the step before. A role has few of the DAG's streams, so its own are numbered anew.
struct HappensBefore {
  /// `plan.ended` must be filled: the proof of progress comes first.
  explicit HappensBefore(const PlanFacts& plan);
  /// The stream is the DAG's, and one that the role has.
  std::int32_t count(std::uint32_t action, std::size_t stream) const {
    const std::uint32_t role = plan.role_of[action];
    return counts[row(role, action) + local[role * plan.num_streams() + stream]];
  }
  std::size_t row(std::uint32_t role, std::uint32_t action) const { return base[role] + std::size_t{action - plan.first_action[role]} * width[role]; }
  /// Action b of the same role ended before a starts: b of the same step, or of the step before when `previous`.
  bool ended_before(std::uint32_t b, std::uint32_t a, bool previous) const {
    const Action& action = plan.action(b);
    const auto end = static_cast<std::int32_t>(action.position) + 1;
    return count(a, action.stream.index()) >= (previous ? end - static_cast<std::int32_t>(plan.stream_size[plan.slot(plan.role_of[b], action.stream)]) : end);
  }
  const PlanFacts& plan;
  std::vector<std::uint32_t> local;   // per (role, stream): its number in the role
  std::vector<std::uint32_t> width;   // per role: its number of streams
  std::vector<std::size_t> base;      // per role: where its counts begin
  std::vector<std::int32_t> counts;
};

/// Roles cover the mesh; each has exactly the actions of its devices; streams, communicators and operands fit. Fills the tables.
/// False: the plan is too broken for the other checks.
bool check_plan_shape(PlanFacts& plan);
/// Nothing can hang; windows are large enough. Fills `ended`. False: it can hang.
bool check_progress(PlanFacts& plan);
void check_windows(PlanFacts& plan, const HappensBefore& before);
/// Races, values and accumulation over two steps.
void check_memory(PlanFacts& plan, const HappensBefore& before);

}  // namespace piper::verify
