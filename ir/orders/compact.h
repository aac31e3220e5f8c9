#pragma once
// `compact`: steps move to earlier free slots, across others of their rank, within a bound on
// activations. grammar/README.md section 7 has the rule as pseudo-code.
//
//   one rank: compact(at 0: F0, at 3: BI0, at 4: F1, at 7: BI1)   ->   at 0: F0, at 1: BI0, at 2: F1, at 3: BI1

#include "ir/orders/order_graph.h"

namespace piper::orders {

struct Compacted {
  /// Nothing changed: the activations of this operation are unknown, and there is a cap.
  const directive::OrderOp* unknown = nullptr;
  /// No result keeps the cap; with this one there is one.
  std::optional<double> min_cap;
  DeviceSetId largest;  // a rank that holds too much
};

/// `cap`: the most activations of a rank, in microbatches of a device share; none: no bound. The
/// order names no communication. If ranks wait for each other forever nothing changes.
Compacted compact(OrderTree& tree, const Facts& facts, std::optional<double> cap);

}  // namespace piper::orders
