#include "runtime/cuda/step_times.h"

#include <algorithm>

#include "runtime/cuda/gpu.h"

namespace piper::runtime::cuda {

bool StepTimes::begin() {
  Driver& driver = *gpu_.driver;
  const GpuStream& origin = gpu_.origin();
  recorded_.clear();
  actions_.resize(gpu_.ranks.size());
  for (const auto& rank : gpu_.ranks) {
    std::vector<TimedAction>& actions = actions_[rank->index];
    actions.resize(rank->active().program->num_actions);
    for (TimedAction& action : actions) action.next_call = 0;
  }
  if (start_ == nullptr && !gpu_.done(driver.create_timer(&start_), "cuEventCreate")) return false;
  if (!gpu_.join_streams() ||
      !gpu_.done(driver.record(start_, origin.cuda_stream), "cuEventRecord") ||
      !gpu_.fork_streams())
    return false;
  running_ = true;
  return true;
}

StepTimes::TimedAction& StepTimes::timed(const GpuRank& rank, std::uint32_t action) {
  return actions_[rank.index][action];
}

bool StepTimes::mark(const GpuRank& rank, std::uint32_t stream, std::uint32_t action,
                     Event& timer) {
  if (timer == nullptr &&
      !gpu_.done(gpu_.driver->create_timer(&timer), "cuEventCreate", &rank, action))
    return false;
  return gpu_.done(gpu_.driver->record(timer, rank.streams[stream].cuda_stream), "cuEventRecord",
                   &rank, action);
}

bool StepTimes::time_of(Event timer, std::uint64_t& ns) const {
  double seconds = 0;
  if (!gpu_.done(gpu_.driver->elapsed(start_, timer, &seconds), "cuEventElapsedTime")) return false;
  ns = static_cast<std::uint64_t>(std::max(0.0, seconds) * 1e9);
  return true;
}

bool StepTimes::read() {
  std::vector<RecordedRank> read;
  for (const auto& rank : gpu_.ranks) {
    RecordedRank& to = read.emplace_back();
    to.rank = rank->job->rank;
    const PiperProgram& program = *rank->active().program;
    for (std::uint32_t q = 0; q < program.num_streams; ++q) {
      for (std::uint32_t position = 0; position < program.streams[q].num_actions; ++position) {
        const TimedAction& action = timed(*rank, program.streams[q].action_of[position]);
        RecordedAction& made = to.actions.emplace_back();
        made.stream = q;
        made.position = position;
        if (!time_of(action.begin, made.begin_ns) || !time_of(action.end, made.end_ns))
          return false;
        made.end_ns = std::max(made.begin_ns, made.end_ns);
        made.least_ns = made.end_ns - made.begin_ns;
        for (std::size_t c = 0; c < action.next_call; ++c) {
          std::uint64_t from = 0, until = 0;
          if (!time_of(action.calls[c].from, from) || !time_of(action.calls[c].to, until))
            return false;
          (action.calls[c].family == CallFamily::product ? made.product_ns : made.attention_ns) +=
              until > from ? until - from : 0;
        }
      }
    }
  }
  recorded_ = std::move(read);
  return true;
}

}  // namespace piper::runtime::cuda
