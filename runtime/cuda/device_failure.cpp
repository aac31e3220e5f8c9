// The actions at which the device was when it failed or stopped making progress.
#include <algorithm>
#include <tuple>

#include "runtime/cuda/gpu.h"

namespace piper::runtime::cuda {

namespace {

/// The maximum number of further actions that are named beside the first.
constexpr std::size_t kMaxNamed = 4;

void name_actions(const Gpu& gpu, Failure& failure) {
  const std::vector<ActionAt> at = actions_under_way(gpu);
  if (at.empty()) return;
  const auto program = [&](const ActionAt& each) -> const PiperProgram& {
    return *each.rank->ranks[static_cast<std::size_t>(gpu.phase)].program;
  };
  failure.rank = at.front().rank->job->rank;
  failure.step = gpu.first_step + at.front().step;
  failure.place = location_of(program(at.front()), at.front().action);
  if (at.front().last != at.front().action) {
    ActionLocation last = location_of(program(at.front()), at.front().last);
    const std::string text =
        "or an action after it up to `" + last.action +
        "`: a graph signals short actions together, steps with `PIPER_CUDA_GRAPHS=0` one by one";
    failure.notes.push_back({text, std::move(last)});
  }
  for (std::size_t i = 1; i < std::min(at.size(), kMaxNamed); ++i) {
    ActionLocation place = location_of(program(at[i]), at[i].action);
    const std::string name = "rank " + std::to_string(at[i].rank->job->rank) + ", `" +
                             place.action + "` was in flight beside it, on another stream";
    failure.notes.push_back({name, std::move(place)});
  }
}

}  // namespace

std::vector<ActionAt> actions_under_way(const Gpu& gpu) {
  const auto phase = static_cast<std::size_t>(gpu.phase);
  std::vector<ActionAt> found;
  for (const auto& rank : gpu.ranks) {
    const GpuProgram& program = rank->programs[phase];
    const PiperRank& active = rank->ranks[phase];
    for (std::uint32_t q = 0; active.program != nullptr && q < active.program->num_streams; ++q) {
      const GpuStream& stream = rank->streams[q];
      const PiperStream& table = active.program->streams[q];
      const std::uint64_t count = stream.ended();
      if (table.num_actions == 0) continue;
      const std::uint64_t step = count / table.num_actions;
      const std::uint32_t position = static_cast<std::uint32_t>(count % table.num_actions),
                          action = table.action_of[position];
      // If a call could not enqueue more, only the next action is known.
      if (count == stream.enqueued && step > active.step) continue;
      const ScannedAction& scanned = program.scan->actions[action];
      const bool ready =
          std::all_of(scanned.waits.begin(), scanned.waits.end(), [&](const PiperWait& wait) {
            if (step < wait.distance) return true;
            return rank->streams[wait.stream].ended() >
                   (step - wait.distance) * active.program->streams[wait.stream].num_actions +
                       wait.position;
          });
      const std::uint32_t last =
          gpu.in_graph[step % kStepsInFlight] ? program.signalled_with[q][position] : position;
      if (ready) found.push_back({rank.get(), action, table.action_of[last], step});
    }
  }
  // A communication counts as in flight while its members are on their way to it: compute actions
  // come first, then the order of all ranks.
  std::stable_sort(found.begin(), found.end(), [&](const ActionAt& a, const ActionAt& b) {
    const GpuProgram &of_a = a.rank->programs[phase], &of_b = b.rank->programs[phase];
    const bool moves_a = of_a.scan->actions[a.action].stream != 0,
               moves_b = of_b.scan->actions[b.action].stream != 0;
    return std::tuple(moves_a, a.step, of_a.role->places[a.action]) <
           std::tuple(moves_b, b.step, of_b.role->places[b.action]);
  });
  return found;
}

Failure device_failure(const Gpu& gpu, Status status) {
  Failure failure{.code = kCudaKernelFailed,
                  .message = gpu.driver->device_name() + " failed: " + gpu.driver->text_of(status)};
  failure.hint =
      "the device runs nothing more; if the same action fails again, its kernels are at fault (`piper build --device cuda` writes them), else the device";
  name_actions(gpu, failure);
  return failure;
}

Failure failure_of_others(const Gpu& gpu, Failure failure) {
  // A failure of another rank keeps its own location.
  if (failure.rank == Failure::kNoRank || failure.rank == gpu.ranks.front()->job->rank) {
    if (failure.place.action.empty()) name_actions(gpu, failure);
  }
  return failure;
}

Failure device_stalled(const Gpu& gpu, double seconds) {
  Failure failure{.code = kStalled,
                  .message = "nothing has moved on " + gpu.driver->device_name() + " for `" +
                             std::to_string(static_cast<long long>(seconds)) + "` seconds"};
  failure.hint = "PIPER_STALL_SECONDS sets the limit";
  name_actions(gpu, failure);
  return failure;
}

}  // namespace piper::runtime::cuda
