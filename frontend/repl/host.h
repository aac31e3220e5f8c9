#pragma once
// The environment of a session. Passed in, so that tests run the same object in process.

#include <atomic>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "frontend/pictures/screen.h"
#include "frontend/source/source_manager.h"
#include "ir/cancellation.h"

namespace piper::repl {

/// Ctrl-C, which ends one request and not the next.
class Interrupt : public Cancellation {
 public:
  bool requested() const override { return flag_.load(std::memory_order_relaxed); }
  /// From any thread, and from a signal handler.
  void raise() { flag_.store(true, std::memory_order_relaxed); }
  void clear() { flag_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> flag_ = false;
};

struct Host {
  std::ostream& out;
  const source::FileSystem& files;
  // none: a plain text
  std::function<pictures::Screen()> screen = {};
  // `piper` with these words as a child, on the session's streams; its exit code.
  std::function<int(const std::vector<std::string>& words)> run_program = {};
  // The reader's editor; its exit code.
  std::function<int(const std::string& path)> run_editor = {};
};

}  // namespace piper::repl
