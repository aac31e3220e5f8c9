#pragma once
// The operations of an order as a graph, for transforms that move work: what each of them needs, as
// far as an order says by itself.
//
// A transform knows parts and dimensions, not the model. Per instance (the coordinates on the
// dimensions of splits): `F` of part k needs `F` of part k - 1 of the same name, `B` and `BI` the
// reverse, each `F` is before the `B` or `BI` of its part, `R` between them, and `BI` before `BW`.
// The same holds for regions inside a part. Regions of different names need nothing of each other.
// So each model forbids at least what the graph does, and the compiler checks the rest.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/orders/order_value.h"

namespace piper::orders {

/// The lines of a schedule that transforms read.
struct Facts {
  std::vector<directive::NamedExtent> dims;   // of splits
  std::vector<directive::NamedExtent> parts;  // of partitions
};

/// The symbols of the dimensions.
std::vector<Symbol> names_of(std::span<const directive::NamedExtent> extents);

class OrderGraph {
 public:
  struct Operation {
    std::uint32_t rank = 0, step = 0;
    std::int64_t length = 1;  // 0: communication
  };

  OrderGraph(const OrderTree& tree, const Facts& facts);

  /// Operations by rank and step, as they run: vertices 0 to size - 1. Others are barriers, which
  /// take no time.
  const std::vector<Operation>& operations() const { return operations_; }
  std::size_t vertices() const { return indegree_.size(); }
  std::span<const std::uint32_t> successors(std::uint32_t vertex) const {
    return {targets_.data() + first_[vertex], first_[vertex + 1] - first_[vertex]};
  }
  /// Edges that arrive at each vertex; the order of a rank has none.
  const std::vector<std::uint32_t>& indegree() const { return indegree_; }
  /// An operation that names other dimensions than the first one of the order; null if there is
  /// none. The graph is incomplete then.
  const directive::OrderOp* other_dimensions() const { return other_dimensions_; }

 private:
  friend class OrderGraphBuilder;
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> first_, targets_, indegree_;
  const directive::OrderOp* other_dimensions_ = nullptr;
};

/// Half-open, in columns.
struct Interval {
  std::int64_t begin = 0, end = 0;
};

/// The earliest columns of the steps of each rank, if each rank runs its steps one after the other
/// as written; nothing if ranks wait for each other forever.
std::optional<std::vector<std::vector<Interval>>> columns(const OrderTree& tree,
                                                          const OrderGraph& graph);

}  // namespace piper::orders
