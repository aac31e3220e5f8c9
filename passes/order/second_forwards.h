#pragma once
// The `R`s that no order names: each runs directly before its backward, or before the overlap group
// of its backward.
//
//   rank pp0: F stage[0] mb[0]; B stage[0] mb[0]                            ->   F, R, B
//   rank pp0: F stage[0] mb[0]; { F stage[0] mb[1] } & { B stage[0] mb[0] }   ->   F, R, F and B together

#include <utility>
#include <vector>

#include "llvm/ADT/DenseSet.h"
#include "passes/order/data_order.h"
#include "passes/order/roles.h"
#include "passes/selectors/select.h"

namespace piper::passes {

class SecondForwards {
 public:
  /// Finds the `R`s that the orders of `strategy` name. All must outlive it.
  SecondForwards(const dag::Dag& dag, const directive::Strategy& strategy, const RoleTable& roles,
                 Selection& selection, DataOrder& data_order, const LocationTable& locations);

  /// Whether the program has `R`s at all.
  bool any() const { return any_; }
  /// Whether an order names the `R`.
  bool named(dag::NodeId again) const { return named_.contains(again); }
  /// The `R` that runs directly before a backward chunk; invalid if there is none or an order names
  /// it.
  dag::NodeId before(dag::NodeId node);
  /// The `R`s of the backwards that the rank runs in a group, each with the operation that names
  /// its backward, in the order of the text. An `R` whose forward is in the group is left out.
  std::vector<std::pair<dag::NodeId, LocId>> before_group(const directive::Order& order,
                                                          const directive::OrderStep& group,
                                                          const directive::RankSteps& rank);

 private:
  struct Group {
    std::vector<std::pair<dag::NodeId, LocId>> found;
    llvm::DenseSet<dag::NodeId> forwards;
  };
  void find(const directive::Order& order, const directive::OrderStep& step,
            const directive::RankSteps& rank, Group& group);

  const dag::Dag& dag_;
  const RoleTable& roles_;
  Selection& selection_;
  DataOrder& data_order_;
  const LocationTable& locations_;
  bool any_;
  llvm::DenseSet<dag::NodeId> named_;
};

}  // namespace piper::passes
