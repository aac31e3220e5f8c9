#include "runtime/launch/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <thread>

#include "runtime/executor/executor.h"

namespace piper::runtime {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGTERM};
static_assert(std::size(kSignals) == Interrupt::kListened);
std::atomic<bool> requested_flag{false};
std::atomic<int> waiters{-1};
std::atomic<Executor*> listener{nullptr};
std::atomic<int> handling{0};  // handlers that are running, on any thread
static_assert(std::atomic<Executor*>::is_always_lock_free &&
                  std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may use them");

// SA_RESETHAND: the second signal has its default action.
void on_signal(int) {
  const int error = errno;
  ++handling;
  requested_flag.store(true);
  if (Executor* executor = listener.load()) executor->request_stop();
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(waiters.load(), &one, sizeof one);
  --handling;
  errno = error;
}

/// Waits until running handlers have returned, so that objects they loaded may be destroyed. A
/// handler on this thread has already returned.
void wait_for_handlers() {
  while (handling.load() > 0) std::this_thread::yield();
}

}  // namespace

Interrupt::Interrupt() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  requested_flag.store(false);
  waiters.store(file_);
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kListened; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kListened; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  waiters.store(-1);
  wait_for_handlers();
  if (file_ >= 0) close(file_);
}

bool Interrupt::requested() const { return requested_flag.load(); }

EndsRun::EndsRun(const Interrupt& interrupt, Executor& executor) {
  listener.store(&executor);
  if (interrupt.requested()) executor.request_stop();
}

EndsRun::~EndsRun() {
  listener.store(nullptr);
  wait_for_handlers();
}

IgnoreBrokenPipes::IgnoreBrokenPipes() {
  struct sigaction action{};
  action.sa_handler = SIG_IGN;
  sigemptyset(&action.sa_mask);
  sigaction(SIGPIPE, &action, &before_);
}

IgnoreBrokenPipes::~IgnoreBrokenPipes() { sigaction(SIGPIPE, &before_, nullptr); }

}  // namespace piper::runtime
