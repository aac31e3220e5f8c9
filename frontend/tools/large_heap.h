#pragma once
// Memory for a process that compiles once and ends: large tables come from the heap, in large pages, and stay in the process when they are freed.
//
// A million nodes touch some hundred thousand pages of 4 KiB for the first time, each with a trap into the kernel; pages of 2 MiB need a few dozen.
// Where the system has none, and under allocators other than glibc's, nothing changes.

#include <atomic>
#include <cstddef>
#include <thread>

namespace piper::tools {

/// Before the tables grow; further calls do nothing. Address space is reserved, memory is not.
void use_large_heap();

/// Has the system clear the next `bytes` of the large heap on a thread of its own while the caller works: clearing is a tenth of what `check` of
/// 200,000 nodes does, and the caller would stand still meanwhile. Nothing happens without a large heap, for few bytes, or on one core.
class HeapFiller {
 public:
  explicit HeapFiller(std::size_t bytes);
  HeapFiller(const HeapFiller&) = delete;
  HeapFiller& operator=(const HeapFiller&) = delete;
  /// What is not yet cleared is left to who touches it.
  ~HeapFiller();

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace piper::tools
