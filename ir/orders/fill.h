#pragma once
// `fill(BW)`: pending weight gradients run in free slots of their rank.
//
//   fill(at 0: F0, at 3: BI0, at 4: F1, at 6: BI1)   ->   at 5: BW0, at 7: BW1 besides

#include "ir/orders/order_graph.h"

namespace piper::orders {

/// Puts each pending weight gradient, oldest first, into the first slot that no step takes, that is
/// after its `BI`, and after the weight gradient before it. A rank without slots has those of
/// `squeeze`, and none afterwards. If ranks wait for each other forever, the weight gradients of
/// ranks without slots follow their last step.
void fill(OrderTree& tree, const Facts& facts);

}  // namespace piper::orders
