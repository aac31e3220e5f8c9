#include "ir/orders/fill.h"

#include <algorithm>
#include <map>
#include <utility>

namespace piper::orders {

using directive::OrderCoordinate;
using directive::OrderOp;

namespace {

/// The coordinates of an operation in an order of their own.
std::vector<std::pair<std::uint64_t, std::uint64_t>> key_of(const OrderOp& op,
                                                            const OrderTree& tree) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> key;
  for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
    const OrderCoordinate& at = tree.coordinates[op.first_coordinate + i];
    key.emplace_back(std::uint64_t{at.name.value()} << 1 | (at.rest ? 1 : 0),
                     at.all ? 0 : std::uint64_t{at.index} + 1);
  }
  std::sort(key.begin(), key.end());
  return key;
}

/// The steps of a rank over its slots.
class Filling {
 public:
  Filling(RankTree& rank, const OrderTree& tree, std::vector<Interval> taken)
      : rank_(rank), tree_(tree), taken_(std::move(taken)) {
    for (std::size_t s = 0; s < rank.steps.size(); ++s) {
      for_each_op(rank.steps[s], [&](const OrderOp& op) {
        if (op.pass == Pass::BI && op.part == directive::CommClass::none)
          ends_[key_of(op, tree)] = taken_[s].end;
      });
    }
  }

  void run() {
    std::vector<StepTree> filled;
    std::size_t next = 0;
    // The first slot that may be free.
    std::int64_t free = taken_.empty() ? 0 : taken_.front().begin;
    for (const OrderOp& op : rank_.pending) {
      const auto end = ends_.find(key_of(op, tree_));
      if (end != ends_.end()) free = std::max(free, end->second);
      // Steps that begin at or before the slot come first; one that covers it moves it.
      while (next < taken_.size() && taken_[next].begin <= free) {
        free = std::max(free, taken_[next].end);
        filled.push_back(std::move(rank_.steps[next]));
        ++next;
      }
      StepTree step;
      step.loc = op.loc;
      step.ops.push_back(op);
      step.slot = free;
      filled.push_back(std::move(step));
      ++free;
    }
    for (; next < taken_.size(); ++next) filled.push_back(std::move(rank_.steps[next]));
    rank_.steps = std::move(filled);
    rank_.pending.clear();
  }

 private:
  RankTree& rank_;
  const OrderTree& tree_;
  std::vector<Interval> taken_;  // by step, ascending
  std::map<std::vector<std::pair<std::uint64_t, std::uint64_t>>, std::int64_t> ends_;  // of `BI`s
};

}  // namespace

void fill(OrderTree& tree, const Facts& facts) {
  std::optional<std::vector<std::vector<Interval>>> intervals;
  const bool any_list = std::any_of(tree.ranks.begin(), tree.ranks.end(), [](const RankTree& rank) {
    return !rank.slotted && !rank.pending.empty();
  });
  if (any_list) intervals = columns(tree, OrderGraph(tree, facts));
  for (std::size_t r = 0; r < tree.ranks.size(); ++r) {
    RankTree& rank = tree.ranks[r];
    if (rank.pending.empty()) continue;
    std::vector<Interval> taken;
    std::int64_t behind = 0;
    for (std::size_t s = 0; s < rank.steps.size(); ++s) {
      const std::int64_t size = length(rank.steps[s]);
      if (rank.slotted) {
        taken.push_back({rank.steps[s].slot, rank.steps[s].slot + size});
      } else if (intervals) {
        taken.push_back((*intervals)[r][s]);
      } else {  // without gaps
        taken.push_back({behind, behind + size});
      }
      behind = taken.back().end;
    }
    if (!rank.slotted && !intervals) {
      for (Interval& interval : taken) interval.end = behind;
    }
    Filling(rank, tree, std::move(taken)).run();
  }
}

}  // namespace piper::orders
