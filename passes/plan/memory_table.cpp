#include "passes/plan/memory_table.h"

#include <algorithm>
#include <numeric>

#include "ir/alignment.h"
#include "passes/plan/staging.h"

namespace piper::passes {

using namespace dag;

namespace {

/// A buffer that becomes live or dead when an action starts.
struct Change {
  std::uint32_t action = 0;
  BufferClass cls = BufferClass::activations;
  std::int64_t bytes = 0;
};

std::vector<Change> changes_of(const Role& role) {
  constexpr std::uint32_t kNever = 0xFFFFFFFFu;
  std::vector<std::uint32_t> first(role.buffers.size(), kNever), last(role.buffers.size(), 0);
  std::vector<Change> changes;
  for (std::uint32_t a = 0; a < role.actions.size(); ++a) {
    const Action& action = role.actions[a];
    for (std::uint32_t o = action.first_operand; o < action.first_operand + action.num_operands;
         ++o) {
      const std::size_t b = role.operands[o].buffer.index();
      const Buffer& buffer = role.buffers[b];
      if (buffer.cls == BufferClass::workspace && (first[b] == kNever || last[b] != a)) {
        changes.push_back({a, buffer.cls, aligned(buffer.bytes)});
        changes.push_back({a + 1, buffer.cls, -aligned(buffer.bytes)});
      }
      first[b] = std::min(first[b], a);
      last[b] = a;
    }
  }
  for (std::size_t b = 0; b < role.buffers.size(); ++b) {
    const Buffer& buffer = role.buffers[b];
    if (is_state(buffer.cls) || is_on_host(buffer.cls) || buffer.cls == BufferClass::workspace ||
        first[b] == kNever)
      continue;
    changes.push_back({first[b], buffer.cls, aligned(buffer.bytes)});
    changes.push_back({last[b] + 1, buffer.cls, -aligned(buffer.bytes)});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.action < b.action; });
  return changes;
}

}  // namespace

std::int64_t MemoryRow::sum_of_rest() const {
  return std::accumulate(rest.begin(), rest.end(), std::int64_t{0});
}
std::int64_t MemoryRow::sum_of_peak() const {
  return std::accumulate(peak.begin(), peak.end(), std::int64_t{0});
}

std::vector<MemoryRow> memory_table(const Dag& dag) {
  std::vector<MemoryRow> rows;
  for (const Role& role : dag.plan->roles) {
    MemoryRow& row = rows.emplace_back();
    row.role = dag.context->text(role.name);
    row.arena = role.arena_bytes;
    row.host = role.host_bytes;
    row.staging = planned_staging(dag, role);
    for (const Buffer& buffer : role.buffers) {
      if (is_state(buffer.cls) && !is_on_host(buffer.cls))
        row.rest[static_cast<std::size_t>(buffer.cls)] += aligned(buffer.bytes);
    }
    row.peak = row.rest;
    std::array<std::int64_t, kBufferClasses> now = row.rest;
    std::int64_t total = row.sum_of_rest(), most = total;
    const std::vector<Change> changes = changes_of(role);
    for (std::size_t i = 0; i < changes.size();) {
      const std::uint32_t action = changes[i].action;
      for (; i < changes.size() && changes[i].action == action; ++i) {
        now[static_cast<std::size_t>(changes[i].cls)] += changes[i].bytes;
        total += changes[i].bytes;
      }
      if (total <= most) continue;
      most = total;
      row.peak = now;
      row.at = role.actions[action].node;
    }
  }
  return rows;
}

}  // namespace piper::passes
