#include "runtime/launch/interrupt.h"

#include <atomic>

#include "runtime/executor/executor.h"

namespace piper::runtime {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
std::atomic<Executor*> listener{nullptr};
static_assert(std::atomic<Executor*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free, "a signal handler may use them");

// SA_RESETHAND: the second signal meets the default.
void on_signal(int) {
  if (Executor* executor = listener.load()) executor->request_stop();
}

}  // namespace

Interrupt::Interrupt(Executor& executor) {
  listener.store(&executor);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  listener.store(nullptr);
}

IgnoreBrokenPipes::IgnoreBrokenPipes() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  sigemptyset(&action.sa_mask);
  sigaction(SIGPIPE, &action, &before_);
}

IgnoreBrokenPipes::~IgnoreBrokenPipes() { sigaction(SIGPIPE, &before_, nullptr); }

}  // namespace piper::runtime
