#include "runtime/cpu/sleep.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace piper::runtime {

Sleep::~Sleep() {
  if (signal_ >= 0) close(signal_);
}

bool Sleep::watch(int descriptor) {
  signal_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  watched_ = descriptor;
  return signal_ >= 0;
}

void Sleep::commit(std::uint32_t key, std::int64_t timeout_ns) {
  timespec timeout{};
  timeout.tv_sec = timeout_ns / 1'000'000'000;
  timeout.tv_nsec = timeout_ns % 1'000'000'000;
  const timespec* const until = timeout_ns == kForever ? nullptr : &timeout;
  if (signal_ < 0) {
    syscall(SYS_futex, &epoch_, FUTEX_WAIT_PRIVATE, key, until, nullptr, 0);
  } else {
    // A wake-up since `announce` has written to the signal.
    pollfd files[] = {{signal_, POLLIN, 0}, {watched_, POLLIN, 0}};
    ppoll(files, 2, until, nullptr);
    std::uint64_t ignored = 0;  // one read takes all wake-ups
    [[maybe_unused]] const ssize_t taken = read(signal_, &ignored, sizeof ignored);
  }
  withdraw();
}

void Sleep::wake_sleeper() {
  __atomic_fetch_add(&epoch_, 1u, __ATOMIC_SEQ_CST);
  if (signal_ >= 0) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(signal_, &one, sizeof one);
    return;
  }
  syscall(SYS_futex, &epoch_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace piper::runtime
