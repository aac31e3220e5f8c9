#pragma once
// Boxes: which part of a value a device holds.
//
// A part has, per dimension, where it begins in the whole value, how many positions it has and how many the whole has. An axis of k members cuts n positions into
// contiguous blocks of which the first n mod k have one more than the others. Which block is whose follows from the coordinates of the device, so that a part is a
// fact about a type, a layout and a device, and nothing else has to know it.
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
/// Block `index` of `count` of a stretch.
Stretch block(const Stretch& of, std::int64_t count, std::int64_t index);

/// One stretch per dimension of a type.
using Box = std::vector<Stretch>;

/// Axes that cut one thing, by their places in the mesh, outermost first.
using AxisList = llvm::SmallVector<std::uint32_t, 2>;
/// Positions and the axes that cut them.
struct Cut {
  Stretch of;
  AxisList axes;
  friend bool operator==(const Cut&, const Cut&) = default;
};
/// What a device has of them: each axis cuts what the one before left.
Stretch part(const Cut& cut, const Mesh& mesh, std::span<const std::uint32_t> coordinates);

/// The axes that do `how` to a value.
AxisList axes_of(const Layout& layout, AxisShare how, const Mesh& mesh);
/// The same without their order, and a layout in which these do, outermost first.
AxisMask mask_of(const Layout& layout, AxisShare how, const Mesh& mesh);
Layout layout_over(AxisMask axes, AxisShare how, const Mesh& mesh);
/// What the device at these coordinates holds of a value of a whole type. A summand is as large as the value.
Box box_of(const tensor::Type& type, const Layout& layout, const Mesh& mesh, std::span<const std::uint32_t> coordinates);

}  // namespace piper
