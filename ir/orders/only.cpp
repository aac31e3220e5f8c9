#include "ir/orders/only.h"

#include <algorithm>
#include <set>

namespace piper::orders {

bool only(OrderTree& tree, const OnRank& on) {
  tree.sharing_ranks = sharing_ranks(tree);
  std::erase_if(tree.ranks, [&](const RankTree& rank) { return !on(rank.devices); });
  return !tree.ranks.empty();
}

std::uint32_t sharing_ranks(const OrderTree& tree) {
  if (tree.sharing_ranks > 0) return tree.sharing_ranks;
  // Replicas have the same operations in the same order, so the first tells them apart.
  std::set<std::vector<std::uint64_t>> firsts;
  for (const RankTree& rank : tree.ranks) {
    if (rank.steps.empty()) continue;
    std::vector<std::uint64_t> key;
    bool done = false;
    for (const StepTree& step : rank.steps) {
      if (done) break;
      for_each_op(step, [&](const directive::OrderOp& op) {
        if (done || op.part != directive::CommClass::none) return;
        done = true;
        for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
          const directive::OrderCoordinate& at = tree.coordinates[op.first_coordinate + i];
          key.push_back(std::uint64_t{at.name.value()} << 32 | at.index);
        }
      });
    }
    firsts.insert(std::move(key));
  }
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(firsts.size()));
}

}  // namespace piper::orders
