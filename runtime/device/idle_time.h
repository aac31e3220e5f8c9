#pragma once
// How long nothing has moved, as seen by a thread that looks repeatedly.
//
//   IdleTime idle(Clock::now());
//   for (;;) { ...; if (idle.look(moved, Clock::now()) > limit) ...; }

#include <algorithm>
#include <chrono>

namespace piper::runtime {

class IdleTime {
 public:
  using Clock = std::chrono::steady_clock;
  /// The most that the time between two looks counts: a process that was stopped (Ctrl-Z, a frozen
  /// container) has not waited meanwhile.
  static constexpr Clock::duration kLongestLook = std::chrono::seconds(1);

  explicit IdleTime(Clock::time_point now) : last_(now) {}

  /// `moved`: something has moved since the last look.
  Clock::duration look(bool moved, Clock::time_point now) {
    idle_ = moved ? Clock::duration::zero() : idle_ + std::min(now - last_, kLongestLook);
    last_ = now;
    return idle_;
  }

 private:
  Clock::time_point last_;
  Clock::duration idle_{};
};

}  // namespace piper::runtime
