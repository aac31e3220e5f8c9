#include "ir/orders/placed_parts.h"

namespace piper::orders {

OrderTree tree_of(const PlacedParts& work, const OperationLists& lists, LocId loc) {
  OrderTree tree;
  tree.loc = loc;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    RankTree& out = tree.ranks.emplace_back();
    out.devices = work.ranks[rank];
    out.loc = loc;
    for (const PlacedOperation& operation : lists[rank]) {
      directive::OrderOp op;
      op.pass = operation.pass;
      op.loc = loc;
      op.first_coordinate = static_cast<std::uint32_t>(tree.coordinates.size());
      op.num_coordinates = static_cast<std::uint32_t>(work.dims.size() + 1);
      tree.coordinates.push_back(
          {work.part.name, operation.piece % work.part.extent, false, loc, false});
      std::uint32_t instance = operation.piece / work.part.extent;
      for (const directive::NamedExtent& dim : work.dims) {
        tree.coordinates.push_back({dim.name, instance % dim.extent, false, loc, false});
        instance /= dim.extent;
      }
      StepTree& step = out.steps.emplace_back();
      step.loc = loc;
      step.ops.push_back(op);
    }
  }
  return tree;
}

}  // namespace piper::orders
