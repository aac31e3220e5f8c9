#pragma once
// Finds changes of a plan that leave another legal plan: to values that no node reads, and swaps of
// independent neighbours.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/dag/plan.h"

namespace piper::test {

class Independence {
 public:
  explicit Independence(const dag::Dag& dag) : dag_(dag) {}

  /// The operand at that position is an output that no node reads.
  bool unread(dag::NodeId node, std::size_t operand) const;
  /// Neighbours on one stream that touch the same bytes, one writing, belong to one communicator,
  /// or have an order between them.
  bool dependent(const dag::Role& role, const dag::Action& a, const dag::Action& b) const;

 private:
  struct Range {
    std::int64_t begin, end;
    bool write;
  };
  std::vector<Range> ranges(const dag::Role& role, const dag::Action& action) const;

  const dag::Dag& dag_;
};

}  // namespace piper::test
