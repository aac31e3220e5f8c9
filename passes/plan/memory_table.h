#pragma once
// Bytes in each role's arena, by class: between two steps, and at the peak. The data of
// `show memory`.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::passes {

inline constexpr std::size_t kBufferClasses =
    static_cast<std::size_t>(dag::BufferClass::scalars) + 1;

struct MemoryRow {
  std::string role;  // `pp0`
  // Bytes by class: parameters, gradients, optimizer and scalars stay from step to step.
  std::array<std::int64_t, kBufferClasses> rest{};
  // At the action with the most live bytes, the first of equals; their sum is Role::live_bytes.
  std::array<std::int64_t, kBufferClasses> peak{};
  dag::NodeId at;          // that action; invalid if only state is live
  std::int64_t arena = 0;  // bytes allocated
  std::int64_t host = 0;   // bytes allocated in the memory of the host
  // Bytes of the memory of the host from which checkpoints are written; 0: the train keeps none.
  std::int64_t staging = 0;
  std::int64_t sum_of_rest() const;
  std::int64_t sum_of_peak() const;
};

/// A row per role of a planned DAG. Counted as in `ir/verify/plan_facts.h`: in steps of 64 bytes, a
/// workspace during its action, any other buffer from the first to the last action that names it.
std::vector<MemoryRow> memory_table(const dag::Dag& dag);

}  // namespace piper::passes
