#pragma once
// Boxes: the part of a value that a device holds.
//
// A box has one interval per dimension: first index, extent and global extent. An axis of k members divides n positions into contiguous shards, of
// which the first n mod k have one position more than the others. A box follows from a type, a layout and the coordinates of a device alone.
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
struct Stretch {
  std::int64_t first = 0, extent = 0;
  std::int64_t global = 0;  // of the whole dimension
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

inline Stretch whole(std::int64_t extent) { return {0, extent, extent}; }
/// Shard `index` of `count` of an interval.
Stretch block(const Stretch& of, std::int64_t count, std::int64_t index);

/// One interval per dimension of a type.
using Box = std::vector<Stretch>;

/// Axes that shard one dimension or bucket, as positions in the mesh, outermost first.
using AxisList = llvm::SmallVector<std::uint32_t, 2>;
/// An interval and the axes that shard it.
struct Cut {
  Stretch of;
  AxisList axes;
  friend bool operator==(const Cut&, const Cut&) = default;
};
/// The interval of one device: each axis divides the shard that the axis before it left.
Stretch part(const Cut& cut, const Mesh& mesh, std::span<const std::uint32_t> coordinates);

/// The axes with layout `how`, outermost first.
AxisList axes_of(const Layout& layout, AxisShare how, const Mesh& mesh);
/// The same as a mask, and a layout in which the axes of a mask have layout `how`, in mesh order.
AxisMask mask_of(const Layout& layout, AxisShare how, const Mesh& mesh);
Layout layout_over(AxisMask axes, AxisShare how, const Mesh& mesh);
/// The box of a value of global type `type` on the device at these coordinates. A partial value has full
/// extents.
Box box_of(const tensor::Type& type, const Layout& layout, const Mesh& mesh, std::span<const std::uint32_t> coordinates);

}  // namespace piper
