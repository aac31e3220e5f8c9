#pragma once
// Memory for a process that compiles once and ends: large tables come from the heap, in large
// pages, and stay in the process when they are freed.
//
// A million nodes touch some hundred thousand pages of 4 KiB for the first time, each with a trap
// into the kernel; pages of 2 MiB need a few dozen. Without large pages, and with allocators other
// than glibc's, it has no effect.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

namespace piper::tools {

/// Call before the tables grow; further calls do nothing. Address space is reserved, memory is not.
void use_large_heap();

/// Has the system clear the next pages of the large heap on a thread of its own while the caller
/// works: clearing is a tenth of the time of a `check` of 200,000 nodes, and would block the
/// caller. The thread is started early and sleeps until then, because a woken thread goes to an
/// idle core, but a new one often shares the core of its creator.
class HeapFiller {
 public:
  HeapFiller();
  HeapFiller(const HeapFiller&) = delete;
  HeapFiller& operator=(const HeapFiller&) = delete;
  /// Stops; pages that are not cleared yet are cleared on first access.
  ~HeapFiller();

  /// Clears the next `bytes` after those in use, and abandons the rest of an earlier call. Nothing
  /// happens without a large heap, for few bytes, or on one core.
  void fill(std::size_t bytes);

 private:
  struct Pages {
    std::uintptr_t first = 0, end = 0;
  };
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  Pages wanted_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace piper::tools
