#pragma once
// Ctrl-C, SIGTERM and a terminal that is closed (SIGHUP) end a run at the next common step boundary, and what is done before a run; a second one ends the process at once, as if nobody
// had listened. One that was ignored before, as a shell does for what it starts in the background, stays ignored.
//
//   const Interrupt interrupt;
//   build(interrupt.file());      // which ends its compilers
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
  /// It can be read once the signal has come: for those who wait.
  int file() const { return file_; }

 private:
  struct sigaction before_[kListened];
  int file_;
};

/// For its lifetime the interrupt, also one that has come before, ends the executor's run. The executor must outlive it.
class EndsRun {
 public:
  EndsRun(const Interrupt& interrupt, Executor& executor);
  ~EndsRun();
  EndsRun(const EndsRun&) = delete;
  EndsRun& operator=(const EndsRun&) = delete;
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
