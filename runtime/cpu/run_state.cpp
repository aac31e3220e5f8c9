#include "runtime/cpu/run_state.h"

#include "runtime/cpu/progress.h"

namespace piper::runtime {

PiperRank& LocalRank::active() { return ranks[static_cast<std::size_t>(run->phase)]; }

bool RunState::begin_step(LocalRank& rank, std::uint64_t step) {
  // The thread that allows the step needs nothing of it, so this wait cannot close a cycle.
  if (!wait_until(*this, rank.sleep, [&] { return step < allowed.load() || over.load(); }) ||
      step >= allowed.load())
    return false;
  std::uint64_t word = started_steps.load();
  while ((word & ~kFrozen) <= step) {
    if (word & kFrozen) return false;
    if (started_steps.compare_exchange_weak(word, step + 1)) {
      engine->sleep().wake();
      break;
    }
  }
  return !cancelled.load();
}

void RunState::fail(Failure reason) {
  {
    const std::lock_guard lock(failure_mutex);
    if (!failure) failure = std::move(reason);
  }
  cancelled.store(true);
  wake_all();
}

void RunState::wake_all() {
  if (engine != nullptr) engine->sleep().wake();
  for (LocalRank* rank : ranks) rank->sleep.wake();
  main_sleep.wake();
}

std::uint32_t action_at(const PiperProgram& program, std::uint32_t stream, std::uint64_t count) {
  if (stream >= program.num_streams || count == 0 || program.streams[stream].num_actions == 0)
    return kNoAction;
  const PiperStream& table = program.streams[stream];
  const std::uint64_t position = (count - 1) % table.num_actions;
  return table.action_of ? table.action_of[position]
         : table.comm    ? table.comm[position].action
                         : kNoAction;
}

}  // namespace piper::runtime
