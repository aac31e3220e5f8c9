#pragma once
// Ctrl-C and SIGTERM end a run at the next common step boundary; a second one ends the process at once, as if nobody had listened. One that was ignored
// before, as a shell does for what it starts in the background, stays ignored.
//
//   const Interrupt interrupt(executor);
//   executor.run(...);   // Ended::stopped after Ctrl-C

#include <csignal>

namespace piper::runtime {

class Executor;

/// Listens for its lifetime; one at a time in a process. The executor must outlive it.
class Interrupt {
 public:
  explicit Interrupt(Executor& executor);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

 private:
  struct sigaction before_[2];
};

/// While it lives, a write to a pipe that nobody reads fails; it does not end the process. A run goes on when its reader is gone: what it keeps
/// in files is kept, and its threads are joined.
class IgnoreBrokenPipes {
 public:
  IgnoreBrokenPipes();
  ~IgnoreBrokenPipes();
  IgnoreBrokenPipes(const IgnoreBrokenPipes&) = delete;
  IgnoreBrokenPipes& operator=(const IgnoreBrokenPipes&) = delete;

 private:
  struct sigaction before_;
};

}  // namespace piper::runtime
