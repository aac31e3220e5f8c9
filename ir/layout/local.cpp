#include "ir/layout/local.h"

#include "ir/layout/box.h"

namespace piper {

tensor::Type local(tensor::Type type, const Layout& layout, const Mesh& mesh,
                   std::span<const std::uint32_t> coordinates) {
  for (const Layout::Axis& axis : layout.axes) {
    const std::size_t position = mesh.find(axis.name);
    for (tensor::Dim& dim : type.dims) {
      if (axis.how == AxisLayout::sharded(dim.name))
        dim.extent =
            shard_of(full_interval(dim.extent), mesh.axes[position].size, coordinates[position])
                .extent;
    }
  }
  return type;
}

AxisMask sharding_axes(const Layout& layout, const Mesh& mesh) {
  AxisMask mask = 0;
  for (const Layout::Axis& axis : layout.axes) {
    if (axis.how.kind == LayoutKind::sharded) mask |= AxisMask{1} << mesh.find(axis.name);
  }
  return mask;
}

}  // namespace piper
