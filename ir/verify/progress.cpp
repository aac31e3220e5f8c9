#include <algorithm>

#include "ir/verify/plan_facts.h"
#include "llvm/ADT/DenseMap.h"

namespace piper::verify {

namespace {

/// Runs every action as soon as its dependencies have run, without durations (docs/execution.md
/// section 4). Actions that never run are in a deadlock cycle or wait for one.
class Machine {
 public:
  /// `limited`: communications are contracted, and follow each other in each rank's issue order.
  Machine(PlanFacts& plan, bool limited)
      : plan_(plan),
        dag_(plan.facts.dag),
        n_(static_cast<std::uint32_t>(plan.steps.size())),
        limited_(limited) {}

  bool run() {
    pending_.assign(n_, 0);
    comm_pending_.assign(dag_.comms.size(), 0);
    previous_comm_.assign(limited_ ? n_ : 0, kNone);
    next_comm_.assign(limited_ ? n_ : 0, kNone);
    waiters_first_.assign(n_ + 1, 0);
    members_first_.assign(dag_.comms.size() + 1, 0);
    for (std::uint32_t a = 0, last = kNone; a < n_; ++a) {
      if (a == plan_.first_action[plan_.role_of[a]]) last = kNone;
      if (plan_.steps[a].position > 0) ++pending_[a];
      for_each_wait(a, [&](std::uint32_t target) {
        ++pending_[a];
        ++waiters_first_[target + 1];
      });
      const std::uint32_t comm = plan_.steps[a].comm;
      if (comm == kNone) continue;
      ++comm_pending_[comm];
      ++members_first_[comm + 1];
      if (!limited_) continue;
      if (last != kNone) {
        ++pending_[a];
        previous_comm_[a] = last;
        next_comm_[last] = a;
      }
      last = a;
    }
    for (std::uint32_t a = 0; a < n_; ++a) waiters_first_[a + 1] += waiters_first_[a];
    for (std::size_t c = 0; c < dag_.comms.size(); ++c) members_first_[c + 1] += members_first_[c];
    waiters_.resize(waiters_first_[n_]);
    members_.resize(members_first_.back());
    std::vector<std::uint32_t> fill(waiters_first_.begin(), waiters_first_.end() - 1),
        member_fill(members_first_.begin(), members_first_.end() - 1);
    for (std::uint32_t a = 0; a < n_; ++a) {
      for_each_wait(a, [&](std::uint32_t target) { waiters_[fill[target]++] = a; });
      if (plan_.steps[a].comm != kNone) members_[member_fill[plan_.steps[a].comm]++] = a;
    }
    ended_.reserve(n_);
    started_.assign(n_, false);
    has_ended_.assign(n_, false);
    for (std::uint32_t a = 0; a < n_; ++a) {
      if (pending_[a] == 0 && !started_[a]) start(a);
    }
    // `ended_` is the queue: an end starts the actions that it releases, and these end unless they
    // wait for a partner.
    for (std::size_t k = 0; k < ended_.size(); ++k) {
      const std::uint32_t a = ended_[k];
      const Lane& lane = plan_.lane(a);
      const std::uint32_t position = plan_.steps[a].position;
      if (position + 1 < lane.size) release(plan_.action_at[lane.first + position + 1]);
      for (std::uint32_t w = waiters_first_[a]; w < waiters_first_[a + 1]; ++w)
        release(waiters_[w]);
      if (limited_ && next_comm_[a] != kNone) release(next_comm_[a]);
    }
    return ended_.size() == n_;
  }

  /// The ended actions, role by role.
  std::vector<std::uint32_t> take_ended() {
    std::vector<std::uint32_t> sorted(n_),
        fill(plan_.first_action.begin(), plan_.first_action.end() - 1);
    for (const std::uint32_t a : ended_) sorted[fill[plan_.role_of[a]]++] = a;
    return sorted;
  }

  /// Reports a cycle: follows waits until an action repeats.
  void report_deadlock() {
    std::uint32_t at = 0;
    while (has_ended_[at]) ++at;
    std::vector<std::uint32_t> seen(n_, kNone);
    struct Link {
      std::uint32_t action, next;
      std::string why;
    };
    std::vector<Link> path;
    while (seen[at] == kNone) {
      seen[at] = static_cast<std::uint32_t>(path.size());
      Link step{at, kNone, {}};
      if (started_[at]) {
        // Its partner has not started.
        const std::uint32_t comm = plan_.steps[at].comm;
        for (std::uint32_t m = members_first_[comm]; m < members_first_[comm + 1]; ++m) {
          if (!started_[members_[m]]) step.next = members_[m];
        }
        step.why = "is at the rendezvous and waits for";
      } else {
        if (plan_.steps[at].position > 0 && !has_ended_[plan_.before(at)]) {
          step.next = plan_.before(at);
          step.why = "comes in its stream after";
        }
        for_each_wait(at, [&](std::uint32_t target) {
          if (step.next != kNone || has_ended_[target]) return;
          step.next = target;
          step.why = "waits for the event of";
        });
        if (step.next == kNone && limited_) {
          step.next = previous_comm_[at];
          step.why = "is issued after";
        }
      }
      path.push_back(step);
      at = step.next;
    }
    const std::size_t first = seen[at];
    const auto role_name = [&](std::uint32_t a) {
      return std::string(plan_.facts.text(plan_.plan.roles[plan_.role_of[a]].name));
    };
    const Code code = limited_ ? Code::limited_deadlock : Code::deadlock;
    auto report = plan_.facts.sink.report(
        code, plan_.loc(at), "`{}` on `{}` waits for itself: {}", plan_.name(at), role_name(at),
        limited_ ? "devices that run one communication at a time would hang" : "the program hangs");
    for (std::size_t k = first; k < path.size(); ++k) {
      report.related(plan_.loc(path[k].action), "`{}`: `{}` {} `{}`{}", role_name(path[k].action),
                     plan_.name(path[k].action), path[k].why, plan_.name(path[k].next),
                     plan_.role_of[path[k].next] == plan_.role_of[path[k].action]
                         ? ""
                         : " on `" + role_name(path[k].next) + "`");
    }
  }

 private:
  /// The waits for actions of this step.
  template <typename Visit>
  void for_each_wait(std::uint32_t a, Visit visit) const {
    const std::span<const dag::Wait> waits = plan_.waits(a);
    for (std::size_t w = 0; w < waits.size(); ++w) {
      if (waits[w].distance == 0) visit(plan_.targets[plan_.first_target[a] + w]);
    }
  }

  void release(std::uint32_t a) {
    if (--pending_[a] == 0) start(a);
  }

  void start(std::uint32_t a) {
    started_[a] = true;
    const std::uint32_t c = plan_.steps[a].comm;
    if (c == kNone) return end(a);
    if (--comm_pending_[c] > 0) return;
    for (std::uint32_t m = members_first_[c]; m < members_first_[c + 1]; ++m) end(members_[m]);
  }

  void end(std::uint32_t a) {
    has_ended_[a] = true;
    ended_.push_back(a);
  }

  PlanFacts& plan_;
  const Dag& dag_;
  const std::uint32_t n_;
  const bool limited_;
  std::vector<std::uint32_t> pending_, comm_pending_, previous_comm_, next_comm_;
  std::vector<std::uint32_t> waiters_first_, waiters_, members_first_, members_;
  std::vector<std::uint32_t> ended_;
  std::vector<bool> started_, has_ended_;
};

}  // namespace

bool follows_global_order(PlanFacts& plan) {
  const Facts& facts = plan.facts;
  if (facts.position.empty()) return false;
  NodePolls polls(facts.dag.context->cancellation);
  for (std::size_t r = 0; r + 1 < plan.first_action.size(); ++r) {
    const dag::Role& role = plan.plan.roles[r];
    const std::uint32_t first = plan.first_action[r];
    std::uint32_t last = kNone;
    for (std::uint32_t i = 0; i < role.actions.size(); ++i) {
      polls.visit();
      const Step& step = plan.steps[first + i];
      const std::uint32_t at =
          facts.position[step.comm == kNone ? step.node
                                            : facts.dag.comms[step.comm].members.front().index()];
      if (last != kNone && at <= last) return false;
      last = at;
      const Action& action = role.actions[i];
      for (std::uint32_t w = 0; w < action.num_waits; ++w) {
        if (role.waits[action.first_wait + w].distance == 0 &&
            plan.targets[plan.first_target[first + i] + w] >= first + i)
          return false;
      }
    }
  }
  plan.ended.resize(plan.steps.size());
  for (std::uint32_t a = 0; a < plan.ended.size(); ++a) plan.ended[a] = a;
  return true;
}

bool check_progress(PlanFacts& plan) {
  // The contracted graph has all edges of the plain one, so most plans need one run.
  Machine limited(plan, true);
  if (limited.run()) {
    plan.ended = limited.take_ended();
    return true;
  }
  Machine plain(plan, false);
  if (plain.run()) {
    limited.report_deadlock();
  } else {
    plain.report_deadlock();
  }
  return false;
}

namespace {

/// A count far below any real one: no action is known to have ended.
constexpr std::int32_t kNever = -(1 << 30);
/// Rows are padded to whole blocks, which become vector instructions.
constexpr std::size_t kBlock = 4;

void raise(std::int32_t* __restrict own, const std::int32_t* __restrict theirs, std::size_t width) {
  for (std::size_t s = 0; s < width; s += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k) own[s + k] = std::max(own[s + k], theirs[s + k]);
  }
}

/// Counts of the previous step, shifted by one step; older ones are dropped. `sizes`: of the lanes.
void raise_across_steps(std::int32_t* __restrict own, const std::int32_t* __restrict theirs,
                        const std::int32_t* __restrict sizes, std::size_t width) {
  for (std::size_t s = 0; s < width; s += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k)
      own[s + k] = std::max(own[s + k], theirs[s + k] > 0 ? theirs[s + k] - sizes[s + k] : kNever);
  }
}

}  // namespace

void HappensBefore::set_role(std::uint32_t role) {
  first_ = plan_.first_action[role];
  const std::uint32_t count = plan_.first_action[role + 1] - first_;
  const std::span<const Lane> lanes =
      std::span(plan_.lanes)
          .subspan(plan_.first_lane[role], plan_.first_lane[role + 1] - plan_.first_lane[role]);
  width_ = (lanes.size() + kBlock - 1) / kBlock * kBlock;
  counts_.resize(std::size_t{count} * width_);
  sizes_.assign(width_, 0);
  for (std::size_t s = 0; s < lanes.size(); ++s)
    sizes_[s] = static_cast<std::int32_t>(lanes[s].size);
  const Step* const steps = plan_.steps.data() + first_;
  const auto row_of = [&](std::uint32_t action) {
    return counts_.data() + std::size_t{action - first_} * width_;
  };
  const dag::Role& actions = plan_.plan.roles[role];
  // Within a step: the targets of waits ended before, so their rows are complete.
  const auto join = [&](std::int32_t* own, std::uint32_t b) {
    const Step& step = steps[b - first_];
    raise(own, row_of(b), width_);
    own[step.lane] = std::max(own[step.lane], static_cast<std::int32_t>(step.position) + 1);
  };
  const auto join_step_before = [&](std::int32_t* own, std::uint32_t b) {
    const Step& step = steps[b - first_];
    if (own != row_of(b)) raise_across_steps(own, row_of(b), sizes_.data(), width_);
    own[step.lane] =
        std::max(own[step.lane], static_cast<std::int32_t>(step.position) + 1 - sizes_[step.lane]);
  };
  // A path from one step to the next crosses once: the first round follows paths within a step, the
  // second all.
  for (const bool crossing : {false, true}) {
    for (const std::uint32_t a : plan_.ended_of(role)) {
      std::int32_t* const own = row_of(a);
      const Step& step = steps[a - first_];
      const Lane& lane = lanes[step.lane];
      if (step.position > 0) {
        std::copy_n(row_of(plan_.action_at[lane.first + step.position - 1]), width_, own);
        own[step.lane] = static_cast<std::int32_t>(step.position);
      } else if (!crossing) {
        std::fill_n(own, width_, kNever);
      } else {
        join_step_before(own, plan_.action_at[lane.first + lane.size - 1]);
      }
      const Action& action = actions.actions[a - first_];
      const std::uint32_t* const targets = plan_.targets.data() + plan_.first_target[a];
      for (std::uint32_t w = 0; w < action.num_waits; ++w) {
        if (actions.waits[action.first_wait + w].distance == 0) {
          join(own, targets[w]);
        } else if (crossing) {
          join_step_before(own, targets[w]);
        }
      }
    }
  }
}

void check_issue_points(const PlanFacts& plan, const RoleView& view, const HappensBefore& before,
                        Reports reports) {
  const std::uint32_t first = plan.first_action[view.number()];
  const auto& all = plan.issued_after;
  for (std::uint32_t later = 0; later < view.size() && !all.empty(); ++later) {
    const std::uint32_t node = view.entry(later).node;
    auto pair = std::lower_bound(all.begin(), all.end(), std::pair(node, std::uint32_t{0}));
    for (; pair != all.end() && pair->first == node; ++pair) {
      if (reports.enough()) return;
      const std::uint32_t earlier = view.action_of(pair->second);
      if (earlier == kNone || before.ended_before(first + earlier, first + later, false)) continue;
      reports.sink
          .report(Code::wrong_order, plan.loc(first + later),
                  "`{}` does not wait for `{}`, but is ordered after it", plan.name(first + later),
                  plan.name(first + earlier))
          .related(plan.loc(first + earlier), "`{}` is here", plan.name(first + earlier));
    }
  }
}

void check_windows(const PlanFacts& plan, const RoleView& view, const HappensBefore& before,
                   ReceiveWindows& windows, Reports reports) {
  const Facts& facts = plan.facts;
  const std::uint32_t first = plan.first_action[view.number()];
  // The role's receives by communicator.
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> received;
  llvm::DenseMap<std::uint32_t, std::uint32_t> number_of;
  for (std::uint32_t i = 0; i < view.size(); ++i) {
    if (!is_recv(view.entry(i).kind)) continue;
    const std::uint32_t c = view.role().actions[i].communicator.value();
    const auto [number, fresh] =
        number_of.try_emplace(c, static_cast<std::uint32_t>(received.size()));
    if (fresh) received.push_back({c, {}});
    received[number->second].second.push_back(i);
  }
  std::sort(received.begin(), received.end());
  std::vector<std::uint32_t> reader, highest;
  for (const auto& [c, actions] : received) {
    if (reports.enough()) return;
    const dag::Communicator& communicator = plan.plan.communicators[c];
    const std::size_t messages = communicator.comms.size();
    if (communicator.kind != dag::Communicator::Kind::pair || actions.size() != messages) continue;
    reader.resize(messages);
    highest.resize(messages);
    for (std::size_t j = 0; j < messages; ++j) {
      reader[j] = view.entry(actions[j]).first_reader;
      highest[j] = j == 0 ? reader[j] : std::max(highest[j - 1], reader[j]);
      if (j == 0 || reader[j] > highest[j - 1]) continue;
      // The earliest message that is read after this one, or by the same reader, which needs both
      // at once.
      const auto i = static_cast<std::size_t>(
          std::lower_bound(highest.begin(), highest.begin() + static_cast<std::ptrdiff_t>(j) + 1,
                           reader[j]) -
          highest.begin());
      if (i < j && j - i + 1 > windows.min_windows[c]) {
        windows.min_windows[c] = static_cast<std::uint32_t>(j - i + 1);
        windows.far[c] = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j)};
      }
    }
    const std::uint32_t w = communicator.window;
    for (std::size_t j = 0; w > 0 && w <= messages && j < messages && !reports.enough(); ++j) {
      const bool previous = j < w;
      const std::uint32_t needed = reader[previous ? j + messages - w : j - w];
      const std::uint32_t posted = first + actions[j];
      if (needed == kNone || before.ended_before(first + needed, posted, previous)) continue;
      reports.sink
          .report(
              Code::window_exceeded, plan.loc(posted),
              "`{}` is posted without waiting for `{}`{}, so more than `{}` messages may have arrived unread",
              plan.name(posted), plan.name(first + needed), previous ? " of the step before" : "",
              w)
          .related(facts.loc(NodeId(view.entry(needed).node)),
                   "`{}` reads the message that must be read first", plan.name(first + needed));
    }
  }
}

void check_min_windows(const PlanFacts& plan, const ReceiveWindows& windows, Reports reports) {
  const Dag& dag = plan.facts.dag;
  for (std::size_t c = 0; c < plan.plan.communicators.size() && !reports.enough(); ++c) {
    const dag::Communicator& communicator = plan.plan.communicators[c];
    const std::uint32_t least = windows.min_windows[c];
    if (communicator.kind != dag::Communicator::Kind::pair) continue;
    const std::optional<std::uint32_t> asked = dag.streams[communicator.stream.index()].window;
    if (asked && *asked != communicator.window) {
      reports.sink.report(Code::window_too_small, communicator.loc,
                          "a communicator has window `{}`, and stream `{}` asks for `{}`",
                          communicator.window,
                          plan.facts.text(dag.streams[communicator.stream.index()].name), *asked);
    }
    if (communicator.min_window == least && communicator.window >= least) continue;
    const auto message = [&](std::size_t k) {
      return plan.facts.name(dag.comms[communicator.comms[k].index()].members[0]);
    };
    auto report = reports.sink.report(
        Code::window_too_small, communicator.loc,
        "a communicator has window `{}`, min `{}`; the order in which its messages are read needs `{}`",
        communicator.window, communicator.min_window, least);
    if (least > 1)
      report.hint("`{}` is not read after `{}`", message(windows.far[c].second),
                  message(windows.far[c].first));
  }
}

}  // namespace piper::verify
