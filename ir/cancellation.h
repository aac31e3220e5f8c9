#pragma once
// Cancellation of a request from any thread: its work ends at its next poll.
//
//   Cancellation cancellation;
//   context.cancellation = &cancellation;
//   std::thread([&] { cancellation.request(); }).detach();
//   try { passes::compile(...); } catch (const Cancelled&) {}   // partial results are discarded
//
// Passes and ir/verify poll between their steps, and by `NodePolls` in their long loops, on every
// thread that works for the request.

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
  /// Read at every poll, by several threads at once.
  virtual bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_ = false;
};

/// Thrown by a poll; the service catches it.
struct Cancelled {};

/// Throws Cancelled if the request was cancelled. Null: it cannot be cancelled.
inline void poll(const Cancellation* request) {
  if (request != nullptr && request->requested()) throw Cancelled();
}

/// A loop visits this many nodes in less than a millisecond.
inline constexpr std::size_t kNodesPerPoll = 10000;

/// Counts the nodes that a loop visits and polls after every kNodesPerPoll of them; an iteration
/// costs one subtraction.
///
///   NodePolls polls(dag.context->cancellation);
///   for (const Node& node : dag.nodes) polls.visit(), place(node);
class NodePolls {
 public:
  /// Null: it cannot be cancelled.
  explicit NodePolls(const Cancellation* request) : request_(request) {}

  void visit(std::size_t nodes = 1) {
    if (nodes < left_) {
      left_ -= nodes;
    } else {
      left_ = kNodesPerPoll;
      poll(request_);
    }
  }

 private:
  const Cancellation* request_;
  std::size_t left_ = kNodesPerPoll;
};

}  // namespace piper
