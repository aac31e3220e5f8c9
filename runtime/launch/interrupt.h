#pragma once
// Ctrl-C and SIGTERM end a run at the next common step boundary; a second one ends the process at once, as if nobody had listened.
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

}  // namespace piper::runtime
