#pragma once
// Slow and plain checks of ordered and planned DAGs, by definition: closures instead of clocks, all
// pairs instead of intervals.
//
//   EXPECT_EQ(check_order(dag), "");
//   EXPECT_EQ(check_plan(dag), "");

#include <string>

#include "ir/dag/plan.h"

namespace piper::test {

/// The first way in which `dag.order` is not a linear order of all nodes that respects data flow,
/// temporal edges and matched communication.
std::string check_order(const dag::Dag& dag);

/// The first way in which the plan may hang or a value may be overwritten: a cycle in the graph of
/// matched communications, accesses to shared bytes without order, over two steps; buffers outside
/// the arena; streams that are not restrictions of the global order.
std::string check_plan(const dag::Dag& dag);

}  // namespace piper::test
