#pragma once
// Axes of a body: dimensions that one loop can run over, whatever their names in values; and the
// origins of values.
//
// `rename` joins the two names into one axis unless some value has both, so that renamed values
// still fuse. Values made by `permute`, `broadcast` and joined `rename` are other views of the same
// registers (`source`); values made by any `rename` share memory (`memory`).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/tensor/graph.h"

namespace piper::backend {

using Axis = std::uint32_t;
using Space = std::vector<Axis>;  // a sorted set

bool is_subset(const Space& a, const Space& b);
bool disjoint(const Space& a, const Space& b);
Space without(const Space& a, const Space& b);

class Axes {
 public:
  explicit Axes(const tensor::Graph& graph);

  /// Axes of a value in memory order.
  std::span<const Axis> of(tensor::ValueId value) const { return axes_[value.index()]; }
  Space space(tensor::ValueId value) const;
  std::int64_t extent(Axis axis) const { return extents_[axis]; }
  std::size_t size() const { return extents_.size(); }
  /// The axis of a dimension of the value's type.
  Axis axis(tensor::ValueId value, Symbol dim) const;

  /// The value whose registers this value shares.
  tensor::ValueId source(tensor::ValueId value) const { return sources_[value.index()]; }
  /// The value whose memory this value shares.
  tensor::ValueId memory(tensor::ValueId value) const { return memories_[value.index()]; }
  /// The value of all elements, if it is a known constant: fills and arithmetic on them.
  std::optional<double> constant(tensor::ValueId value) const { return constants_[value.index()]; }

 private:
  void name_axes();
  void find_sources();
  void fold_constants();

  const tensor::Graph& graph_;
  std::vector<std::vector<Axis>> axes_;  // per value
  std::vector<std::int64_t> extents_;    // per axis
  std::vector<bool> joined_;             // per node: a rename whose names became one axis
  std::vector<tensor::ValueId> sources_, memories_;
  std::vector<std::optional<double>> constants_;
};

}  // namespace piper::backend
