#pragma once
// Boxes: the part of a value that a device holds.
//
// A box has one interval per dimension: first index, extent and global extent. An axis of k members
// divides n positions into contiguous shards, of which the first n mod k have one position more
// than the others. A box follows from a type, a layout and the coordinates of a device alone.
//
//   f32[batch: 8, dim: 5]  <dp: batch, tp: dim>   on dp: 2, tp: 2   at (1, 0)     batch 4 +4 of 8, dim 0 +3 of 5

#include <cstdint>
#include <span>
#include <vector>

#include "ir/layout/layout.h"
#include "ir/mesh.h"
#include "ir/tensor/type.h"
#include "llvm/ADT/SmallVector.h"

namespace piper {

/// Positions of one dimension.
struct Interval {
  std::int64_t first = 0, extent = 0;
  std::int64_t global = 0;  // of the whole dimension
  friend bool operator==(const Interval&, const Interval&) = default;
};

inline Interval full_interval(std::int64_t extent) { return {0, extent, extent}; }
/// Shard `index` of `count` of an interval.
Interval shard_of(const Interval& of, std::int64_t count, std::int64_t index);

/// One interval per dimension of a type.
using Box = std::vector<Interval>;

/// Axes that shard one dimension or bucket, as positions in the mesh, outermost first.
using AxisList = llvm::SmallVector<std::uint32_t, 2>;
/// An interval and the axes that shard it.
struct Sharding {
  Interval interval;
  AxisList axes;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};
/// The interval of one device: each axis divides the shard that the axis before it left.
Interval shard_interval(const Sharding& cut, const Mesh& mesh,
                        std::span<const std::uint32_t> coordinates);

/// The axes with layout `how`, outermost first.
AxisList axes_of(const Layout& layout, AxisLayout how, const Mesh& mesh);
/// The same as a mask, and a layout in which the axes of a mask have layout `how`, in mesh order.
AxisMask mask_of(const Layout& layout, AxisLayout how, const Mesh& mesh);
Layout layout_over(AxisMask axes, AxisLayout how, const Mesh& mesh);
/// The box of a value of global type `type` on the device at these coordinates. A partial value has
/// full extents.
Box box_of(const tensor::Type& type, const Layout& layout, const Mesh& mesh,
           std::span<const std::uint32_t> coordinates);

}  // namespace piper
