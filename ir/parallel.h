#pragma once
// Work that falls into independent items, spread over a few threads.
//
//   std::atomic<std::size_t> next = 0;
//   run_workers(workers_for(roles, actions), [&] {
//     for (std::size_t r; (r = next++) < roles;) plans[r] = plan_role(r);
//   });
//
// What the items give must not depend on who works on them: results go to places of their own. Small programs stay on one thread.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace piper {

/// How many threads are worth their start for so many items that visit so many nodes in all.
inline std::size_t workers_for(std::size_t items, std::size_t nodes) {
  constexpr std::size_t kNodesPerWorker = 8192, kMost = 8;
  return std::clamp<std::size_t>(std::min<std::size_t>({items, nodes / kNodesPerWorker, kMost, std::thread::hardware_concurrency()}), 1, kMost);
}

/// Runs `work` on so many threads at once, the calling one among them, and returns when all have returned. `work` must not throw.
template <typename Work>
void run_workers(std::size_t workers, const Work& work) {
  std::vector<std::thread> threads;
  try {
    for (std::size_t i = 1; i < workers; ++i) threads.emplace_back([&work] { work(); });
  } catch (const std::system_error&) {
    // The system has no more threads: those that there are take all items.
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

/// Two pieces of work that share nothing, at once when they visit many nodes.
template <typename First, typename Second>
void run_both(std::size_t nodes, const First& first, const Second& second) {
  std::atomic<int> next = 0;
  run_workers(workers_for(2, nodes), [&] {
    for (int part; (part = next++) < 2;) part == 0 ? first() : second();
  });
}

/// Calls `range(begin, end)` for parts of 0 .. nodes that cover it, on several threads when there are many; says whether all gave true.
/// After the first false the parts that were not begun are left out.
template <typename Range>
bool all_hold(std::size_t nodes, const Range& range) {
  constexpr std::size_t kPart = 8192;
  const std::size_t parts = (nodes + kPart - 1) / kPart;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> good = true;
  run_workers(workers_for(parts, nodes), [&] {
    for (std::size_t part; good && (part = next++) < parts;) {
      if (!range(part * kPart, std::min(nodes, (part + 1) * kPart))) good = false;
    }
  });
  return good;
}

}  // namespace piper
