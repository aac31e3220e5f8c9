#pragma once
// The parts of a partition where they are placed, for `greedy` and `search`, and lists of their
// operations as an order.

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/orders/order_value.h"

namespace piper::orders {

/// The work to order. Parts of one instance depend on each other in ascending order.
struct PlacedParts {
  directive::NamedExtent part;               // `stage: 4`
  std::vector<directive::NamedExtent> dims;  // of splits; none: one instance
  std::vector<DeviceSetId> ranks;            // disjoint
  /// By instance, then part: the rank. Instances are numbered with the first dimension fastest.
  std::vector<std::uint32_t> rank_of;

  std::uint32_t instances() const {
    return static_cast<std::uint32_t>(rank_of.size() / part.extent);
  }
  /// Activations of one part, in microbatches of a device share.
  double share() const { return static_cast<double>(ranks.size()) / part.extent; }
};

/// A rule has the room of a rank and the times of a part.
struct OrderRule {
  std::optional<double> cap;    // activations of a rank, in microbatches of a device share
  bool split_backward = false;  // backwards are `BI` and `BW`
  /// Times of a part, finite and at least 0; a whole backward takes bi + bw.
  double f = 1, bi = 1, bw = 1;
  double comm = 0;  // of a message from one rank to another
};

/// One pass of one part in one instance.
struct PlacedOperation {
  Pass pass = Pass::F;
  std::uint32_t piece = 0;  // into PlacedParts::rank_of
};

/// By rank: its operations as they run.
using OperationLists = std::vector<std::vector<PlacedOperation>>;

OrderTree tree_of(const PlacedParts& work, const OperationLists& lists, LocId loc);

}  // namespace piper::orders
