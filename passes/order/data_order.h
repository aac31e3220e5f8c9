#pragma once
// The order of several chunks that one step of an order names.
//
//   B stage mb[0]          -> B.stage1.mb0, B.stage0.mb0
//   B stage[0..2] mb[0]    -> the same
//   F stage[0] mb[[1, 0]]  -> F.stage0.mb1, F.stage0.mb0: neither waits for the other

#include <cstdint>
#include <vector>

#include "passes/order/work_graph.h"

namespace piper::passes {

class DataOrder {
 public:
  /// Both must outlive it. The constructor waits for the graph's units, queries wait for its edges.
  DataOrder(const dag::Dag& dag, const PendingWorkGraph& graph)
      : dag_(dag), pending_(graph), units_(graph.numbered()) {}

  /// Orders unordered chunks by the data flow alone.
  void sort(std::vector<dag::NodeId>& nodes);
  /// Orders distinct chunks given in written order: a topological order that always takes the first
  /// written of the ready ones.
  void sort_as_written(std::vector<dag::NodeId>& nodes);
  /// Whether `to` waits for `from`, of the same instance.
  bool reaches(dag::NodeId from, dag::NodeId to);

 private:
  const dag::Instance& instance(std::uint32_t unit) const {
    return dag_.node(units_.front(unit)).instance;
  }
  bool visit(std::uint32_t unit);
  void start_visit();

  const dag::Dag& dag_;
  const PendingWorkGraph& pending_;
  const WorkGraph& units_;
  // Per unit: its place in a topological order; filled on demand.
  std::vector<std::uint32_t> position_;
  std::vector<std::uint32_t> visited_;  // per unit: the last visit that reached it
  std::vector<std::uint32_t> number_;   // per unit: its place in `reached_`
  std::uint32_t visit_ = 0;
  std::vector<std::uint32_t> reached_;  // the units of the visit
  // Per reached unit: number of open edges from other reached units.
  std::vector<std::uint32_t> missing_;
};

}  // namespace piper::passes
