#pragma once
// Runs independent items of work on a few threads.
//
//   std::atomic<std::size_t> next = 0;
//   run_workers(workers_for(roles, actions), [&] {
//     for (std::size_t r; (r = next++) < roles;) plans[r] = plan_role(r);
//   });
//
// Results must not depend on the thread: each item writes to a place of its own. Small programs
// stay on one thread. The process has one pool, whose threads are started on first use and sleep
// between uses.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include "ir/cancellation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace piper {

/// The number of threads that pay off for `items` items that visit `nodes` nodes in all.
inline std::size_t workers_for(std::size_t items, std::size_t nodes) {
  constexpr std::size_t kNodesPerWorker = 8192, kMax = 8;
  return std::clamp<std::size_t>(std::min<std::size_t>({items, nodes / kNodesPerWorker, kMax,
                                                        std::thread::hardware_concurrency()}),
                                 1, kMax);
}

/// Runs `work` on at most `workers` threads at once, including the caller, and returns when all
/// threads that began it have returned; it does not wait for threads that have not begun. May be
/// called by `work` itself, and by several threads. An exception of `work` (lack of memory or
/// Cancelled) is thrown here when all have returned; items may then be left out.
void run_workers(std::size_t workers, llvm::function_ref<void()> work);

/// Starts the threads for `nodes` nodes early, because starting one may wait for a lock on the
/// process's memory map.
inline void start_workers(std::size_t nodes) {
  run_workers(workers_for(nodes, nodes), [] {});
}

/// Runs two functions, concurrently if they visit many nodes, else one after the other. `second`
/// may wait for `first`, which must notify it even if it throws.
template <typename First, typename Second>
void run_both(std::size_t nodes, const First& first, const Second& second) {
  std::atomic<int> next = 0;
  run_workers(workers_for(2, nodes), [&] {
    for (int part; (part = next++) < 2;) part == 0 ? first() : second();
  });
}

/// Calls `range(begin, end)` for parts that cover 0 .. nodes, on several threads if there are many;
/// returns whether all calls returned true. After the first false no further part is begun. Each
/// part polls the request.
template <typename Range>
bool all_hold(const Cancellation* request, std::size_t nodes, const Range& range) {
  constexpr std::size_t kPart = 8192;
  static_assert(kPart <= kNodesPerPoll);
  const std::size_t parts = (nodes + kPart - 1) / kPart;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> good = true;
  run_workers(workers_for(parts, nodes), [&] {
    for (std::size_t part; good && (part = next++) < parts;) {
      poll(request);
      if (!range(part * kPart, std::min(nodes, (part + 1) * kPart))) good = false;
    }
  });
  return good;
}

}  // namespace piper
