#include "ir/orders/squeeze.h"

namespace piper::orders {

bool squeeze(OrderTree& tree, const OrderGraph& graph) {
  const auto intervals = columns(tree, graph);
  if (!intervals) return false;
  for (std::size_t r = 0; r < tree.ranks.size(); ++r) {
    tree.ranks[r].slotted = true;
    for (std::size_t s = 0; s < tree.ranks[r].steps.size(); ++s)
      tree.ranks[r].steps[s].slot = (*intervals)[r][s].begin;
  }
  return true;
}

}  // namespace piper::orders
