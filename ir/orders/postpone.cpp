#include "ir/orders/postpone.h"

#include <algorithm>
#include <utility>

namespace piper::orders {

using directive::CommClass;
using directive::OrderOp;

namespace {

struct Moved {
  OrderOp op;
  std::size_t behind = 0;  // it follows so many of the steps that stay
};

class Postponement {
 public:
  Postponement(const OrderTree& tree, const Pattern& pattern) : tree_(tree), pattern_(pattern) {
    whole_backward_ = pattern;
    whole_backward_.pass = Pass::B;
  }

  std::size_t run(RankTree& rank, std::uint64_t by) {
    const bool any = std::any_of(rank.steps.begin(), rank.steps.end(), [&](StepTree& step) {
      bool found = false;
      for_each_op(step, [&](const OrderOp& op) { found = found || moves(op) || splits(op); });
      return found;
    });
    if (!any) return 0;
    make_list(rank);
    for (StepTree& step : rank.steps)
      for_each_op(step, [&](OrderOp& op) { name_split_backward(op); });
    std::vector<StepTree> staying;
    for (StepTree& step : rank.steps) {
      const std::size_t first = moved_.size();
      take(step);
      std::vector<StepTree> remaining;
      remaining.push_back(std::move(step));
      remove_empty(remaining);
      for (StepTree& left : remaining) staying.push_back(std::move(left));
      for (std::size_t i = first; i < moved_.size(); ++i) moved_[i].behind = staying.size();
    }
    rank.steps = merge(std::move(staying), by);
    return moved_.size();
  }

 private:
  bool moves(const OrderOp& op) const { return matches(op, pattern_, tree_); }
  bool splits(const OrderOp& op) const {
    return pattern_.pass == Pass::BW && matches(op, whole_backward_, tree_);
  }

  /// Messages and gathers of a `B` that is split are those of its `BI`; a reduction has one name.
  void name_split_backward(OrderOp& op) const {
    const bool of_backward =
        op.pass == Pass::B &&
        (op.part == CommClass::send || op.part == CommClass::recv || op.part == CommClass::gather);
    if (of_backward && pattern_.pass == Pass::BW && agrees(op, pattern_, tree_)) op.pass = Pass::BI;
  }

  /// Removes the operations that move.
  void take(StepTree& step) {
    std::vector<OrderOp> stay;
    for (OrderOp& op : step.ops) {
      const bool split = splits(op);
      if (!split && !moves(op)) {
        stay.push_back(op);
        continue;
      }
      moved_.push_back({op, 0});
      moved_.back().op.pass = pattern_.pass;
      if (!split) continue;
      op.pass = Pass::BI;
      stay.push_back(op);
    }
    step.ops = std::move(stay);
    for (StepTree& child : step.children) take(child);
  }

  std::vector<StepTree> merge(std::vector<StepTree> staying, std::uint64_t by) {
    std::vector<StepTree> out;
    std::size_t next = 0;
    for (const Moved& moved : moved_) {
      const std::size_t behind = by > staying.size() - moved.behind
                                     ? staying.size()
                                     : moved.behind + static_cast<std::size_t>(by);
      for (; next < behind; ++next) out.push_back(std::move(staying[next]));
      StepTree step;
      step.loc = moved.op.loc;
      step.ops.push_back(moved.op);
      out.push_back(std::move(step));
    }
    for (; next < staying.size(); ++next) out.push_back(std::move(staying[next]));
    return out;
  }

  const OrderTree& tree_;
  const Pattern& pattern_;
  Pattern whole_backward_;  // the `B`s that it splits
  std::vector<Moved> moved_;
};

}  // namespace

std::size_t postpone(OrderTree& tree, const Pattern& pattern, std::uint64_t by, const OnRank& on) {
  std::size_t count = 0;
  for (RankTree& rank : tree.ranks) {
    if (on(rank.devices)) count += Postponement(tree, pattern).run(rank, by);
  }
  return count;
}

}  // namespace piper::orders
