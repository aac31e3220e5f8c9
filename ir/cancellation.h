#pragma once
// A request that may no longer be wanted: whoever asked says so, from any thread, and the work ends at its next poll.
//
//   Cancellation cancellation;
//   context.cancellation = &cancellation;
//   std::thread([&] { cancellation.request(); }).detach();
//   try { passes::compile(...); } catch (const Cancelled&) {}   // what was half done is thrown away
//
// Passes and ir/verify poll between their steps, and by `NodePolls` in their long loops, on whichever thread works for the request.

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

/// Throws Cancelled when the request is no longer wanted. Null: nobody can end it.
inline void poll(const Cancellation* request) {
  if (request != nullptr && request->requested()) throw Cancelled();
}

/// So many nodes take less than a millisecond.
inline constexpr std::size_t kNodesPerPoll = 10000;

/// Counts what a loop visits and polls each time that it was so much; a step of the loop costs one subtraction.
///
///   NodePolls polls(dag.context->cancellation);
///   for (const Node& node : dag.nodes) polls.visit(), place(node);
class NodePolls {
 public:
  /// Null: nobody can end it.
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
