#pragma once
// Work that falls into independent items, spread over a few threads.
//
//   std::atomic<std::size_t> next = 0;
//   run_workers(workers_for(roles, actions), [&] {
//     for (std::size_t r; (r = next++) < roles;) plans[r] = plan_role(r);
//   });
//
// What the items give must not depend on who works on them: results go to places of their own. Small programs stay on one thread. The threads are
// those of the process: they are started when they are first needed, and sleep until they are needed again.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include "ir/cancellation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace piper {

/// How many threads are worth their start for so many items that visit so many nodes in all.
inline std::size_t workers_for(std::size_t items, std::size_t nodes) {
  constexpr std::size_t kNodesPerWorker = 8192, kMost = 8;
  return std::clamp<std::size_t>(std::min<std::size_t>({items, nodes / kNodesPerWorker, kMost, std::thread::hardware_concurrency()}), 1, kMost);
}

/// Runs `work` on at most so many threads at once, the calling one among them, and returns when all that began it have returned: who comes when the
/// items are gone is not waited for. May be called by `work` itself, and by several threads. What `work`
/// throws, which is lack of memory or Cancelled, is thrown here when all have returned; it may then have left out items.
void run_workers(std::size_t workers, llvm::function_ref<void()> work);

/// Has the threads that so many nodes are worth started by now: starting one may wait for what the process's memory is busy with.
inline void start_workers(std::size_t nodes) { run_workers(workers_for(nodes, nodes), [] {}); }

/// Two pieces of work, at once when they visit many nodes, else one after the other. The second may wait for the first, which
/// must tell it also where it throws.
template <typename First, typename Second>
void run_both(std::size_t nodes, const First& first, const Second& second) {
  std::atomic<int> next = 0;
  run_workers(workers_for(2, nodes), [&] {
    for (int part; (part = next++) < 2;) part == 0 ? first() : second();
  });
}

/// Calls `range(begin, end)` for parts of 0 .. nodes that cover it, on several threads when there are many; says whether all gave true.
/// After the first false the parts that were not begun are left out. Each part polls the request.
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
