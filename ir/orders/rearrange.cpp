#include "ir/orders/rearrange.h"

#include <algorithm>
#include <utility>

namespace piper::orders {

using directive::OrderOp;
using directive::OrderStep;

namespace {

/// The steps of operations that a pattern matches.
struct Found {
  std::vector<StepTree*> steps;
  bool in_part = false;  // one of them has further operations
};

void find(StepTree& step, const Pattern& pattern, const OrderTree& tree, Found& found) {
  const auto fits = [&](const OrderOp& op) { return matches(op, pattern, tree); };
  const auto count = std::count_if(step.ops.begin(), step.ops.end(), fits);
  if (count > 0) found.steps.push_back(&step);
  if (count > 0 && static_cast<std::size_t>(count) < step.ops.size()) found.in_part = true;
  for (StepTree& child : step.children) find(child, pattern, tree, found);
}

Found find(RankTree& rank, const Pattern& pattern, const OrderTree& tree) {
  Found found;
  for (StepTree& step : rank.steps) find(step, pattern, tree, found);
  return found;
}

/// Calls `change` with both steps on each rank that has them; first looks at all ranks.
template <typename Change>
Rearranged rearrange(OrderTree& tree, const Pattern& a, const Pattern& b, const OnRank& on,
                     const Change& change) {
  struct Pair {
    RankTree* rank;
    StepTree *a, *b;
  };
  Rearranged result;
  std::vector<Pair> pairs;
  for (RankTree& rank : tree.ranks) {
    if (!on(rank.devices)) continue;
    const Found of_a = find(rank, a, tree), of_b = find(rank, b, tree);
    if (of_a.steps.empty() || of_b.steps.empty()) continue;
    for (const auto& [found, pattern] : {std::pair(&of_a, &a), std::pair(&of_b, &b)}) {
      if (found->steps.size() == 1 && !found->in_part) continue;
      result.unclear = {rank.devices, pattern, found->steps.size(), found->steps.front()->loc};
      return result;
    }
    pairs.push_back({&rank, of_a.steps.front(), of_b.steps.front()});
  }
  for (const Pair& pair : pairs) {
    if (pair.a != pair.b) change(*pair.rank, *pair.a, *pair.b);
  }
  result.ranks = pairs.size();
  return result;
}

}  // namespace

Rearranged swap(OrderTree& tree, const Pattern& a, const Pattern& b, const OnRank& on) {
  return rearrange(tree, a, b, on, [](RankTree&, StepTree& x, StepTree& y) {
    std::swap(x.ops, y.ops);
    std::swap(x.loc, y.loc);
  });
}

Rearranged move_before(OrderTree& tree, const Pattern& moved, const Pattern& next,
                       const OnRank& on) {
  return rearrange(tree, moved, next, on, [](RankTree& rank, StepTree& x, StepTree& y) {
    // The step becomes a sequence of both, wherever it is; the place of the first is then empty.
    StepTree both;
    both.kind = OrderStep::Kind::sequence;
    both.loc = y.loc;
    both.slot = y.slot;
    StepTree first;
    first.loc = x.loc;
    first.ops = std::exchange(x.ops, {});
    both.children.push_back(std::move(first));
    both.children.push_back(std::move(y));
    y = std::move(both);
    remove_empty(rank.steps);
    make_list(rank);
  });
}

}  // namespace piper::orders
