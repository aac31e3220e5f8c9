#pragma once
// Times of the actions of a step on the device, and of the products and attention in them: timers
// around them, read when the run has ended.
//
//   times.begin();                                     // all streams wait for earlier work
//   times.begin_action(rank, queue, action);           // after its waits
//   times.in_call(rank, queue, action, CallFamily::product, [&] { return driver.call(...); });
//   times.end_action(rank, queue, action);
//   times.end();
//   times.read();                                      // when the step has ended

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/trace/recorder.h"

namespace piper::runtime::cuda {

struct Gpu;
struct GpuRank;

class StepTimes {
 public:
  explicit StepTimes(Gpu& gpu) : gpu_(gpu) {}

  /// Whether a step is being timed.
  bool running() const { return running_; }

  /// False after a failure, like the others.
  bool begin();
  void end() { running_ = false; }
  bool begin_action(const GpuRank& rank, std::uint32_t stream, std::uint32_t action) {
    return !running_ || mark(rank, stream, action, timed(rank, action).begin);
  }
  bool end_action(const GpuRank& rank, std::uint32_t stream, std::uint32_t action) {
    return !running_ || mark(rank, stream, action, timed(rank, action).end);
  }
  /// Times `enqueue`, which returns whether it succeeded.
  template <typename Enqueue>
  bool in_call(const GpuRank& rank, std::uint32_t stream, std::uint32_t action, CallFamily family,
               const Enqueue& enqueue) {
    if (!running_) return enqueue();
    const std::size_t at = timed(rank, action).next_call++;
    if (at == timed(rank, action).calls.size())
      timed(rank, action).calls.push_back({.family = family});
    return mark(rank, stream, action, timed(rank, action).calls[at].from) && enqueue() &&
           mark(rank, stream, action, timed(rank, action).calls[at].to);
  }
  bool read();
  /// The last step that was read; empty before.
  const std::vector<RecordedRank>& recorded() const { return recorded_; }

 private:
  struct TimedCall {
    CallFamily family{};
    Event from = nullptr, to = nullptr;
  };
  struct TimedAction {
    Event begin = nullptr, end = nullptr;
    std::vector<TimedCall> calls;
    std::size_t next_call = 0;
  };

  TimedAction& timed(const GpuRank& rank, std::uint32_t action);
  /// Records a timer, and makes it if there is none.
  bool mark(const GpuRank& rank, std::uint32_t stream, std::uint32_t action, Event& timer);
  /// Nanoseconds since the start of the step.
  bool time_of(Event timer, std::uint64_t& ns) const;

  Gpu& gpu_;
  bool running_ = false;
  Event start_ = nullptr;
  std::vector<std::vector<TimedAction>> actions_;  // per rank
  std::vector<RecordedRank> recorded_;
};

}  // namespace piper::runtime::cuda
