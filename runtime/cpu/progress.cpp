#include "runtime/cpu/progress.h"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <map>

namespace piper::runtime {

ProgressEngine::ProgressEngine(RunState& run, Transport& transport)
    : run_(run), transport_(transport), wake_at_(run.ranks.size()) {
  if (transport_.descriptor() >= 0) can_sleep_ = sleep_.watch(transport_.descriptor());
  // Every communicator is connected before step 1, in the order of its id, which is the same on all
  // ranks.
  std::multimap<std::uint32_t, std::pair<LocalRank*, std::uint32_t>> in_global_order;
  for (LocalRank* rank : run.ranks) {
    const PiperRank& active = rank->active();
    for (std::uint32_t c = 0; c < active.program->num_communicators; ++c)
      in_global_order.emplace(active.communicators[c].id, std::pair(rank, c));
  }
  std::map<std::pair<LocalRank*, std::uint32_t>, std::uint32_t> channels;
  transport_.disconnect();
  for (const auto& [id, key] : in_global_order)
    channels[key] = transport_.connect(key.first->active().communicators[key.second]);

  for (LocalRank* rank : run.ranks) {
    const PiperProgram& program = *rank->active().program;
    for (std::uint32_t s = 1; s < program.num_streams; ++s) {
      if (program.streams[s].num_actions == 0) continue;
      Cursor& cursor = cursors_.emplace_back();
      cursor.rank = rank;
      cursor.program = &program;
      cursor.stream = &program.streams[s];
      cursor.index = s;
      cursor.operation.arena = rank->arena.base();
      cursor.operation.host = rank->host.base();
      cursor.operation.intervals = rank->active().intervals;
      for (std::uint32_t c = 0; c < program.num_communicators; ++c)
        cursor.channel_of.push_back(channels[{rank, c}]);
    }
  }
  std::stable_sort(cursors_.begin(), cursors_.end(), [](const Cursor& a, const Cursor& b) {
    return a.stream->high_priority > b.stream->high_priority;
  });
  std::map<const LocalRank*, std::uint32_t> index_of;
  for (std::size_t r = 0; r < run.ranks.size(); ++r)
    index_of.emplace(run.ranks[r], static_cast<std::uint32_t>(r));
  for (const Cursor& cursor : cursors_) rank_index_.push_back(index_of.at(cursor.rank));
}

void ProgressEngine::run() {
  std::uint32_t idle = 0;
  while (!run_.cancelled.load(std::memory_order_relaxed)) {
    if (scan()) {
      idle = 0;
      continue;
    }
    if (finished()) break;
    if (++idle < run_.spin) {
      __builtin_ia32_pause();
      continue;
    }
    if (!transport_.moves_only_on_start() && transport_.descriptor() < 0) {
      sched_yield();
      continue;
    }
    const std::uint32_t key = sleep_.announce();
    if (scan() || finished() || run_.cancelled.load() || !transport_.arm()) {
      sleep_.withdraw();
      continue;
    }
    std::int64_t timeout = Sleep::kForever;
    if (next_deadline_ns_) {
      const std::uint64_t now = run_.api->now_ns();
      timeout = next_deadline_ns_ > now ? static_cast<std::int64_t>(next_deadline_ns_ - now) : 0;
    }
    sleep_.commit(key, timeout);
  }
  run_.engine_done.store(true);
  run_.main_sleep.wake();
}

// True if something moved, or a condition that the engine waits for changed: then it must look
// again before it may sleep.
bool ProgressEngine::scan() {
  const std::uint64_t started = run_.num_started_steps();
  bool moved = transport_.progress();
  moved |= started != started_;
  started_ = started;
  next_deadline_ns_ = 0;
  std::fill(wake_at_.begin(), wake_at_.end(), UINT64_MAX);
  for (std::size_t i = 0; i < cursors_.size(); ++i) {
    moved |= advance(cursors_[i]);
    if (run_.cancelled.load(std::memory_order_relaxed)) return true;
  }
  for (std::size_t r = 0; r < wake_at_.size(); ++r) {
    if (run_.ranks[r]->wake_at.load(std::memory_order_relaxed) == wake_at_[r]) continue;
    run_.ranks[r]->wake_at.store(wake_at_[r]);
    moved = true;
  }
  return moved;
}

bool ProgressEngine::ready(Cursor& cursor) {
  const PiperCommAction& action = cursor.stream->comm[cursor.position];
  for (std::uint32_t i = 0; i < action.num_waits; ++i) {
    const PiperWait& wait = cursor.program->waits[action.first_wait + i];
    if (cursor.step < wait.distance) continue;
    const std::uint64_t target =
        (cursor.step - wait.distance) * cursor.program->streams[wait.stream].num_actions +
        wait.position + 1;
    if (__atomic_load_n(&cursor.rank->counters[wait.stream * PIPER_COUNTER_STRIDE],
                        __ATOMIC_SEQ_CST) >= target)
      continue;
    if (wait.stream == 0) {
      std::uint64_t& wake_at =
          wake_at_[rank_index_[static_cast<std::size_t>(&cursor - cursors_.data())]];
      wake_at = std::min(wake_at, target);
    }
    return false;
  }
  return true;
}

bool ProgressEngine::held_up(Cursor& cursor, std::uint64_t salt) {
  if (run_.delays.max_us == 0) return false;
  const std::uint64_t now = run_.api->now_ns();
  if (cursor.not_before_ns == 0) {
    const std::uint64_t key =
        ((cursor.step * cursor.stream->num_actions + cursor.position) * 2 + salt) *
            PIPER_MAX_STREAMS +
        cursor.index;
    cursor.not_before_ns = now + random_delay_ns(run_.delays, cursor.rank->job->rank, key);
  }
  if (cursor.not_before_ns <= now) return false;
  if (next_deadline_ns_ == 0 || cursor.not_before_ns < next_deadline_ns_)
    next_deadline_ns_ = cursor.not_before_ns;
  return true;
}

// Moves this cursor as far as possible.
bool ProgressEngine::advance(Cursor& cursor) {
  bool moved = false;
  for (;;) {
    if (!cursor.started) {
      if (cursor.step >= started_ || !ready(cursor) || held_up(cursor, 0)) return moved;
      const PiperCommAction& action = cursor.stream->comm[cursor.position];
      cursor.operation.action = &action;
      cursor.operation.parts = cursor.program->parts + action.first_part;
      cursor.operation.communicator = &cursor.rank->active().communicators[action.communicator];
      cursor.operation.channel = cursor.channel_of[action.communicator];
      cursor.rank->flight.record()->started[cursor.index] =
          cursor.step * cursor.stream->num_actions + cursor.position + 1;
      cursor.started = true;
      if (run_.record) cursor.begin_ns = run_.api->now_ns();
      cursor.not_before_ns = 0;
      transport_.start(cursor.operation);
      moved = true;
    } else if (cursor.operation.state == OperationState::pending) {
      transport_.poll(cursor.operation);
    }
    if (cursor.operation.state == OperationState::pending) {
      // An operation with slices left is polled again at once.
      return moved || transport_.moving(cursor.operation);
    }
    if (cursor.operation.state == OperationState::failed) {
      fail(cursor);
      return true;
    }
    if (held_up(cursor, 1)) return moved;
    end_action(cursor);
    moved = true;
  }
}

void ProgressEngine::end_action(Cursor& cursor) {
  const std::uint64_t count = cursor.step * cursor.stream->num_actions + cursor.position + 1;
  if (run_.record)
    cursor.rank->recorder.write(cursor.index, cursor.step, cursor.position, cursor.begin_ns,
                                run_.api->now_ns());
  cursor.started = false;
  cursor.not_before_ns = 0;
  if (++cursor.position == cursor.stream->num_actions) {
    cursor.position = 0;
    ++cursor.step;
  }
  cursor.rank->flight.record()->ended[cursor.index] = count;
  __atomic_store_n(&cursor.rank->counters[cursor.index * PIPER_COUNTER_STRIDE], count,
                   __ATOMIC_SEQ_CST);
  cursor.rank->sleep.wake();
}

void ProgressEngine::fail(const Cursor& cursor) {
  const Operation& operation = cursor.operation;
  const PiperCommunicator& communicator = *operation.communicator;
  Failure failure{.code = operation.carrier_failed ? kUcxFailed : kMessageMismatch,
                  .message = operation.carrier_failed
                                 ? std::string("a message failed: ") + operation.error
                                 : std::string(operation.error),
                  .hint = {},
                  .rank = cursor.rank->job->rank};
  failure.step = run_.first_step + cursor.step;
  failure.place = location_of(*cursor.program, operation.action->action);
  std::string note = "communicator `" + std::to_string(communicator.id) + "`, " +
                     std::string(comm_op_name(operation.action->op)) + " `" +
                     std::to_string(operation.action->identity) + "`";
  if (!operation.carrier_failed) note += " against `" + std::to_string(operation.error_value) + "`";
  failure.notes.push_back({std::move(note), {}});
  run_.fail(std::move(failure));
}

bool ProgressEngine::finished() const {
  if (!run_.devices_done.load()) return false;
  const std::uint64_t steps = run_.num_started_steps();
  return std::all_of(cursors_.begin(), cursors_.end(),
                     [&](const Cursor& cursor) { return cursor.step >= steps; }) &&
         transport_.flushed();
}

}  // namespace piper::runtime
