#pragma once
// Local types: the extents of the part of a value that a device holds. Types in texts and in the
// IR are global; this is the one place that makes those of a device.
//
//   f32[batch: 8, dim: 5]  <dp: batch, tp: dim>   on dp: 2, tp: 2   at (1, 0)     f32[batch: 4, dim: 3]

#include <cstdint>
#include <span>

#include "ir/layout/layout.h"
#include "ir/mesh.h"
#include "ir/tensor/type.h"

namespace piper {

/// The type of the part of a value of global type `type` that the device at these coordinates
/// holds: the extents of its box.
tensor::Type local(tensor::Type type, const Layout& layout, const Mesh& mesh,
                   std::span<const std::uint32_t> coordinates);
/// The axes that shard a dimension of a value.
AxisMask sharding_axes(const Layout& layout, const Mesh& mesh);

}  // namespace piper
