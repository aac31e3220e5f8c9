#pragma once
// A place where one thread sleeps until another signals a change. No wake-up is lost: the sleeper
// announces itself before it looks for the last time, and the waker looks for sleepers after its
// change.
//
//   sleeper:  for (;;) { if (ready()) break; auto key = sleep.announce(); if (ready()) { sleep.withdraw(); break; } sleep.commit(key, kForever); }
//   waker:    change(); sleep.wake();

#include <cstdint>

namespace piper::runtime {

class Sleep {
 public:
  static constexpr std::int64_t kForever = -1;

  Sleep() = default;
  ~Sleep();
  Sleep(const Sleep&) = delete;
  Sleep& operator=(const Sleep&) = delete;

  /// From now on `commit` also returns when the descriptor is readable. Call before any other
  /// thread knows this object. False if the system gives no more descriptors.
  bool watch(int descriptor);

  /// Call before the last look. Returns the key for `commit`.
  std::uint32_t announce() {
    __atomic_store_n(&sleeping_, 1u, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&epoch_, __ATOMIC_SEQ_CST);
  }
  void withdraw() { __atomic_store_n(&sleeping_, 0u, __ATOMIC_SEQ_CST); }
  /// Sleeps unless `wake` was called since `announce`; at most `timeout_ns`.
  void commit(std::uint32_t key, std::int64_t timeout_ns);

  /// Call after a change.
  void wake() {
    if (__atomic_load_n(&sleeping_, __ATOMIC_SEQ_CST)) wake_sleeper();
  }

  /// For PiperRank::sleepers: nonzero while the thread sleeps or is about to.
  volatile std::uint32_t* sleeping() { return &sleeping_; }

 private:
  void wake_sleeper();

  alignas(64) std::uint32_t sleeping_ = 0;
  std::uint32_t epoch_ = 0;
  int watched_ = -1;  // with it the sleeper polls, and a waker writes to `signal_`
  int signal_ = -1;
};

}  // namespace piper::runtime
