#pragma once
// How long nothing has come from the other end of a connection. A time in which this process itself
// does not run (the whole job is stopped, a virtual machine is paused) counts as at most half a
// second, because the other end may not run then either.
//
//   Silence silence;
//   if (connection.fill()) silence.end();
//   if (silence.lasts(10)) ...;               // must be called several times a second

#include <algorithm>
#include <chrono>

namespace piper::runtime {

class Silence {
 public:
  using Clock = std::chrono::steady_clock;
  void end() {
    lasted_ = Clock::duration::zero();
    looked_at_ = Clock::now();
  }
  /// Whether it has lasted longer than `seconds`; 0: no limit.
  bool lasts(double seconds) { return lasts(seconds, Clock::now()); }
  bool lasts(double seconds, Clock::time_point now) {
    constexpr Clock::duration kMaxBetweenLooks = std::chrono::milliseconds(500);
    lasted_ += std::min(now - looked_at_, kMaxBetweenLooks);
    looked_at_ = now;
    return seconds > 0 && std::chrono::duration<double>(lasted_).count() > seconds;
  }

 private:
  Clock::duration lasted_ = Clock::duration::zero();
  Clock::time_point looked_at_ = Clock::now();
};

}  // namespace piper::runtime
