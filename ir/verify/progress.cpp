#include <algorithm>

#include "ir/verify/plan_facts.h"

namespace piper::verify {

namespace {

/// Lets every action happen as soon as what it needs has happened, without durations (EXECUTION.md section 4). What never happens is in a cycle
/// or behind one.
class Machine {
 public:
  /// `limited`: communications are contracted, and follow each other in each rank's issue order.
  Machine(PlanFacts& plan, bool limited) : plan_(plan), dag_(plan.facts.dag), n_(static_cast<std::uint32_t>(plan.role_of.size())), limited_(limited) {}

  bool run() {
    pending_.assign(n_, 0);
    comm_pending_.assign(dag_.comms.size(), 0);
    previous_comm_.assign(limited_ ? n_ : 0, kNone);
    next_comm_.assign(limited_ ? n_ : 0, kNone);
    waiters_first_.assign(n_ + 1, 0);
    members_first_.assign(dag_.comms.size() + 1, 0);
    for (std::uint32_t a = 0, last = kNone; a < n_; ++a) {
      const Action& action = plan_.action(a);
      const std::uint32_t role = plan_.role_of[a];
      if (a == plan_.first_action[role]) last = kNone;
      if (action.position > 0) ++pending_[a];
      for (const dag::Wait& wait : plan_.waits(a)) {
        if (wait.distance != 0) continue;
        ++pending_[a];
        ++waiters_first_[plan_.at(role, wait.stream, wait.position) + 1];
      }
      const Node& node = plan_.facts.node(action.node);
      if (!is_comm(node.kind)) continue;
      ++comm_pending_[node.comm.index()];
      ++members_first_[node.comm.index() + 1];
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
    std::vector<std::uint32_t> fill(waiters_first_.begin(), waiters_first_.end() - 1), member_fill(members_first_.begin(), members_first_.end() - 1);
    for (std::uint32_t a = 0; a < n_; ++a) {
      for (const dag::Wait& wait : plan_.waits(a)) {
        if (wait.distance == 0) waiters_[fill[plan_.at(plan_.role_of[a], wait.stream, wait.position)]++] = a;
      }
      const Node& node = plan_.facts.node(plan_.action(a).node);
      if (is_comm(node.kind)) members_[member_fill[node.comm.index()]++] = a;
    }
    ended_.reserve(n_);
    started_.assign(n_, false);
    has_ended_.assign(n_, false);
    for (std::uint32_t a = 0; a < n_; ++a) {
      if (pending_[a] == 0 && !started_[a]) start(a);
    }
    // `ended_` is the queue: what an end releases starts, and ends itself unless it waits for a partner.
    for (std::size_t k = 0; k < ended_.size(); ++k) {
      const std::uint32_t a = ended_[k];
      const Action& action = plan_.action(a);
      const std::uint32_t role = plan_.role_of[a];
      if (action.position + 1 < plan_.stream_size[plan_.slot(role, action.stream)]) release(plan_.at(role, action.stream, action.position + 1));
      for (std::uint32_t w = waiters_first_[a]; w < waiters_first_[a + 1]; ++w) release(waiters_[w]);
      if (limited_ && next_comm_[a] != kNone) release(next_comm_[a]);
    }
    return ended_.size() == n_;
  }

  std::vector<std::uint32_t> take_ended() { return std::move(ended_); }

  /// Who waits for whom, until the first repeats.
  void tell() {
    std::uint32_t at = 0;
    while (has_ended_[at]) ++at;
    std::vector<std::uint32_t> seen(n_, kNone);
    struct Step {
      std::uint32_t action, next;
      std::string why;
    };
    std::vector<Step> path;
    while (seen[at] == kNone) {
      seen[at] = static_cast<std::uint32_t>(path.size());
      Step step{at, kNone, {}};
      if (started_[at]) {
        // Its partner has not started.
        const Node& node = plan_.facts.node(plan_.action(at).node);
        for (std::uint32_t m = members_first_[node.comm.index()]; m < members_first_[node.comm.index() + 1]; ++m) {
          if (!started_[members_[m]]) step.next = members_[m];
        }
        step.why = "is at the rendezvous and waits for";
      } else {
        const Action& action = plan_.action(at);
        const std::uint32_t role = plan_.role_of[at];
        if (action.position > 0 && !has_ended_[plan_.at(role, action.stream, action.position - 1)]) {
          step.next = plan_.at(role, action.stream, action.position - 1);
          step.why = "comes in its stream after";
        }
        for (const dag::Wait& wait : plan_.waits(at)) {
          if (wait.distance != 0 || step.next != kNone) continue;
          const std::uint32_t target = plan_.at(role, wait.stream, wait.position);
          if (has_ended_[target]) continue;
          step.next = target;
          step.why = "waits for the event of";
        }
        if (step.next == kNone && limited_) {
          step.next = previous_comm_[at];
          step.why = "is issued after";
        }
      }
      path.push_back(step);
      at = step.next;
    }
    const std::size_t first = seen[at];
    const auto role_name = [&](std::uint32_t a) { return std::string(plan_.facts.text(plan_.plan.roles[plan_.role_of[a]].name)); };
    const Code code = limited_ ? Code::limited_deadlock : Code::deadlock;
    auto report = plan_.facts.sink.report(code, plan_.loc(at), "`{}` on `{}` waits for itself: {}", plan_.name(at), role_name(at),
                                          limited_ ? "devices that run one communication at a time would hang" : "the program hangs");
    for (std::size_t k = first; k < path.size(); ++k) {
      report.related(plan_.loc(path[k].action), "`{}`: `{}` {} `{}`{}", role_name(path[k].action), plan_.name(path[k].action), path[k].why, plan_.name(path[k].next),
                     plan_.role_of[path[k].next] == plan_.role_of[path[k].action] ? "" : " on `" + role_name(path[k].next) + "`");
    }
  }

 private:
  void release(std::uint32_t a) {
    if (--pending_[a] == 0) start(a);
  }

  void start(std::uint32_t a) {
    started_[a] = true;
    const Node& node = plan_.facts.node(plan_.action(a).node);
    if (!is_comm(node.kind)) return end(a);
    const std::size_t c = node.comm.index();
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

bool check_progress(PlanFacts& plan) {
  // The contracted graph has all edges of the plain one, so most plans need one run.
  Machine limited(plan, true);
  if (limited.run()) {
    plan.ended = limited.take_ended();
    return true;
  }
  Machine plain(plan, false);
  if (plain.run()) {
    limited.tell();
  } else {
    plain.tell();
  }
  return false;
}

HappensBefore::HappensBefore(const PlanFacts& facts) : plan(facts) {
  // A count far below any real one: nothing is known to have ended.
  constexpr std::int32_t kNever = -(1 << 30);
  const std::size_t streams = plan.num_streams();
  const auto roles = static_cast<std::uint32_t>(plan.plan.roles.size());
  local.assign(roles * streams, 0);
  width.assign(roles, 0);
  base.assign(roles, 0);
  std::vector<std::int32_t> sizes(roles * streams, 0);  // per role, by its own numbers
  std::size_t total = 0;
  for (std::uint32_t r = 0; r < roles; ++r) {
    for (std::size_t s = 0; s < streams; ++s) {
      const std::uint32_t size = plan.stream_size[r * streams + s];
      if (size == 0) continue;
      local[r * streams + s] = width[r];
      sizes[r * streams + width[r]++] = static_cast<std::int32_t>(size);
    }
    base[r] = total;
    total += std::size_t{plan.first_action[r + 1] - plan.first_action[r]} * width[r];
  }
  counts.assign(total, kNever);
  // A path from one step to the next crosses once, so a second round knows all of them.
  for (int round = 0; round < 2; ++round) {
    for (const std::uint32_t a : plan.ended) {
      const Action& action = plan.action(a);
      const std::uint32_t role = plan.role_of[a];
      const std::uint32_t own_width = width[role];
      const std::int32_t* const size = sizes.data() + role * streams;
      std::int32_t* const own = counts.data() + row(role, a);
      const auto join = [&](std::uint32_t b, dag::StreamId stream, std::uint32_t position, bool previous) {
        const std::int32_t* const theirs = counts.data() + row(role, b);
        if (previous) {
          // What the step before knew of its own step; what reaches further back means nothing here.
          for (std::uint32_t s = 0; s < own_width; ++s) own[s] = std::max(own[s], theirs[s] > 0 ? theirs[s] - size[s] : kNever);
        } else {
          for (std::uint32_t s = 0; s < own_width; ++s) own[s] = std::max(own[s], theirs[s]);
        }
        const std::uint32_t s = local[plan.slot(role, stream)];
        const auto end = static_cast<std::int32_t>(position) + 1;
        own[s] = std::max(own[s], previous ? end - size[s] : end);
      };
      const bool first = action.position == 0;
      const std::uint32_t before = first ? plan.stream_size[plan.slot(role, action.stream)] - 1 : action.position - 1;
      join(plan.at(role, action.stream, before), action.stream, before, first);
      for (const dag::Wait& wait : plan.waits(a)) join(plan.at(role, wait.stream, wait.position), wait.stream, wait.position, wait.distance == 1);
    }
  }
}

namespace {

/// For each message of a communicator, at one receiving role: the place of its first reader in issue order.
std::uint32_t first_reader(const std::vector<std::uint32_t>& readers, std::size_t first, std::size_t last, std::uint32_t begin, std::uint32_t end) {
  std::uint32_t best = kNone;
  for (std::size_t k = first; k < last; ++k) {
    if (readers[k] >= begin && readers[k] < end) best = std::min(best, readers[k]);
  }
  return best;
}

}  // namespace

void check_windows(PlanFacts& plan, const HappensBefore& before) {
  const Dag& dag = plan.facts.dag;
  // Readers of each recv, as actions; ascending by role, then issue order.
  std::vector<std::uint32_t> first(dag.nodes.size() + 1, 0);
  const auto visit = [&](auto&& each) {
    for (std::uint32_t a = 0; a < plan.role_of.size(); ++a) {
      for (const Input& input : dag.inputs_of(plan.facts.node(plan.action(a).node))) {
        if (input.source.node.valid() && plan.facts.node(input.source.node).kind == NodeKind::recv) each(input.source.node, a);
      }
    }
  };
  visit([&](NodeId recv, std::uint32_t) { ++first[recv.index() + 1]; });
  for (std::size_t i = 0; i < dag.nodes.size(); ++i) first[i + 1] += first[i];
  std::vector<std::uint32_t> readers(first.back()), fill(first.begin(), first.end() - 1);
  visit([&](NodeId recv, std::uint32_t a) { readers[fill[recv.index()]++] = a; });

  // The receiving actions of each communicator, role by role.
  std::vector<std::vector<std::uint32_t>> receives(plan.plan.communicators.size());
  for (std::uint32_t a = 0; a < plan.role_of.size(); ++a) {
    const Action& action = plan.action(a);
    if (plan.facts.node(action.node).kind == NodeKind::recv) receives[action.communicator.index()].push_back(a);
  }
  for (std::size_t c = 0; c < receives.size() && !plan.facts.enough(); ++c) {
    const dag::Communicator& communicator = plan.plan.communicators[c];
    if (communicator.kind != dag::Communicator::Kind::pair) continue;
    const std::size_t messages = communicator.comms.size();
    std::uint32_t least = 1;
    std::size_t far_i = 0, far_j = 0;
    const std::size_t rows = messages == 0 ? 0 : receives[c].size() / messages;
    std::vector<std::uint32_t> reader(messages), highest(messages);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint32_t* const actions = receives[c].data() + row * messages;
      const std::uint32_t role = plan.role_of[actions[0]];
      for (std::size_t j = 0; j < messages; ++j) {
        const std::size_t recv = plan.action(actions[j]).node.index();
        reader[j] = first_reader(readers, first[recv], first[recv + 1], plan.first_action[role], plan.first_action[role + 1]);
        highest[j] = j == 0 ? reader[j] : std::max(highest[j - 1], reader[j]);
        // The earliest message that is read after this one, or by the same reader, which needs both at once.
        const auto i = static_cast<std::size_t>(std::lower_bound(highest.begin(), highest.begin() + static_cast<std::ptrdiff_t>(j) + 1, reader[j]) - highest.begin());
        if (i < j && j - i + 1 > least) {
          least = static_cast<std::uint32_t>(j - i + 1);
          far_i = i;
          far_j = j;
        }
      }
      const std::uint32_t w = communicator.window;
      for (std::size_t j = 0; w > 0 && w <= messages && j < messages && !plan.facts.enough(); ++j) {
        const bool previous = j < w;
        const std::uint32_t needed = reader[previous ? j + messages - w : j - w];
        if (needed == kNone || before.ended_before(needed, actions[j], previous)) continue;
        plan.facts.sink
            .report(Code::window_exceeded, plan.loc(actions[j]), "`{}` is posted without waiting for `{}`{}, so more than `{}` messages may have arrived unread", plan.name(actions[j]),
                    plan.name(needed), previous ? " of the step before" : "", w)
            .related(plan.loc(needed), "`{}` reads the message that must be read first", plan.name(needed));
      }
    }
    if (communicator.least_window != least || communicator.window < least) {
      const auto message = [&](std::size_t k) { return plan.facts.name(dag.comms[communicator.comms[k].index()].members[0]); };
      auto report = plan.facts.sink.report(Code::window_too_small, communicator.loc, "a communicator has window `{}`, least `{}`; the order in which its messages are read needs `{}`",
                                           communicator.window, communicator.least_window, least);
      if (least > 1) report.hint("`{}` is not read after `{}`", message(far_j), message(far_i));
    }
  }
}

}  // namespace piper::verify
