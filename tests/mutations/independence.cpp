#include "tests/mutations/independence.h"

#include <algorithm>

#include "ir/dag/local_type.h"

namespace piper::test {

namespace {

/// Workspace holds nothing between actions.
bool in_workspace(const dag::Role& role, std::int64_t begin, std::int64_t end) {
  return std::any_of(role.buffers.begin(), role.buffers.end(), [&](const dag::Buffer& buffer) {
    return buffer.cls == dag::BufferClass::workspace && begin >= buffer.offset &&
           end <= buffer.offset + buffer.bytes;
  });
}

bool waits(const dag::Role& role, const dag::Action& action, const dag::Action& other) {
  const auto begin = role.waits.begin() + action.first_wait;
  return std::any_of(begin, begin + action.num_waits, [&](const dag::Wait& wait) {
    return wait.distance == 0 && wait.stream == other.stream && wait.position == other.position;
  });
}

}  // namespace

bool Independence::unread(dag::NodeId node, std::size_t operand) const {
  std::size_t inputs = 0;
  for (const dag::Input& input : dag_.inputs_of(dag_.node(node)))
    inputs = std::max<std::size_t>(inputs, input.port + 1);
  if (operand < inputs) return false;
  const auto port = static_cast<std::uint32_t>(operand - inputs);
  for (const dag::Node& other : dag_.nodes) {
    for (const dag::Input& input : dag_.inputs_of(other)) {
      if (input.source.node == node && input.source.index == port) return false;
    }
  }
  return port < dag_.node(node).num_outputs;
}

std::vector<Independence::Range> Independence::ranges(const dag::Role& role,
                                                      const dag::Action& action) const {
  const dag::Node& node = dag_.node(action.node);
  std::vector<Range> result;
  std::uint32_t inputs = 0;
  for (const dag::Input& input : dag_.inputs_of(node)) inputs = std::max(inputs, input.port + 1);
  for (std::uint32_t i = 0; i < action.num_operands; ++i) {
    const dag::Operand& operand = role.operands[action.first_operand + i];
    const dag::Buffer& buffer = role.buffers[operand.buffer.index()];
    std::int64_t bytes = buffer.bytes - operand.offset;
    if (i < inputs) {
      for (const dag::Input& input : dag_.inputs_of(node)) {
        if (input.port == i && input.source.node.valid())
          bytes = dag::planned_bytes(dag_, input.source);
      }
    } else if (i < inputs + node.num_outputs) {
      bytes = dag::planned_bytes(dag_, {action.node, i - inputs});
    }
    result.push_back(
        {buffer.offset + operand.offset, buffer.offset + operand.offset + bytes, i >= inputs});
  }
  return result;
}

bool Independence::dependent(const dag::Role& role, const dag::Action& a,
                             const dag::Action& b) const {
  if (a.communicator.valid() && a.communicator == b.communicator) return true;
  if (waits(role, a, b) || waits(role, b, a)) return true;
  if (a.stream != b.stream) return false;
  for (const auto& [before, after] : dag_.temporal) {
    if (before == a.node && after == b.node) return true;
  }
  for (const Range& x : ranges(role, a)) {
    for (const Range& y : ranges(role, b)) {
      const bool scratch = x.write && y.write && in_workspace(role, x.begin, x.end) &&
                           in_workspace(role, y.begin, y.end);
      if ((x.write || y.write) && x.begin < y.end && y.begin < x.end && !scratch) return true;
    }
  }
  return false;
}

}  // namespace piper::test
