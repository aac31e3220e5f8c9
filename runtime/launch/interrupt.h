#pragma once
// Ctrl-C, SIGTERM and a closed terminal (SIGHUP) end a run at the next common step boundary, and
// the work before a run; a second one ends the process at once, by the default action. A signal
// that was ignored before, as a shell does for background jobs, stays ignored.
//
//   const Interrupt interrupt;
//   build(interrupt.file());      // a signal ends its compilers
//   const EndsRun ends(interrupt, executor);
//   executor.run(...);            // Ended::stopped after Ctrl-C

#include <csignal>
#include <cstddef>

namespace piper::runtime {

class Executor;

/// Listens for its lifetime; one at a time in a process.
class Interrupt {
 public:
  static constexpr std::size_t kListened = 3;  // signals

  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
  /// Becomes readable when the signal arrives, for callers that poll.
  int file() const { return file_; }

 private:
  struct sigaction before_[kListened];
  int file_;
};

/// While it lives, the interrupt, also an earlier one, ends the executor's run. The executor must
/// outlive it.
class EndsRun {
 public:
  EndsRun(const Interrupt& interrupt, Executor& executor);
  ~EndsRun();
  EndsRun(const EndsRun&) = delete;
  EndsRun& operator=(const EndsRun&) = delete;
};

/// While it lives, a write to a pipe without a reader fails instead of ending the process. A run
/// goes on when its reader is gone: its files are complete, and its threads are joined.
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
