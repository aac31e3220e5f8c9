#include "runtime/cpu/sleep.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace piper::runtime {

void Sleep::commit(std::uint32_t key, std::int64_t timeout_ns) {
  timespec timeout{};
  timeout.tv_sec = timeout_ns / 1'000'000'000;
  timeout.tv_nsec = timeout_ns % 1'000'000'000;
  syscall(SYS_futex, &epoch_, FUTEX_WAIT_PRIVATE, key, timeout_ns == kForever ? nullptr : &timeout,
          nullptr, 0);
  withdraw();
}

void Sleep::wake_sleeper() {
  __atomic_fetch_add(&epoch_, 1u, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &epoch_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace piper::runtime
