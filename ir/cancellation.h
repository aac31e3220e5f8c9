#pragma once
// A request that may no longer be wanted: whoever asked says so, from any thread, and the work ends at its next poll.
//
//   Cancellation cancellation;
//   context.cancellation = &cancellation;
//   std::thread([&] { cancellation.request(); }).detach();
//   try { passes::compile(...); } catch (const Cancelled&) {}   // what was half done is thrown away
//
// Passes poll `Context::poll` between and in their long loops, every kNodesPerPoll nodes or so, on whichever thread works for the request.

#include <atomic>
#include <cstddef>

namespace piper {

class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  virtual ~Cancellation() = default;

  void request() { requested_.store(true, std::memory_order_relaxed); }
  /// Asked at every poll, by several threads at once.
  virtual bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_ = false;
};

/// Thrown by a poll; the service catches it.
struct Cancelled {};

/// So many nodes take less than a millisecond.
inline constexpr std::size_t kNodesPerPoll = 10000;

}  // namespace piper
