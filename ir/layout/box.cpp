#include "ir/layout/box.h"

#include <algorithm>

namespace piper {

Interval shard_of(const Interval& of, std::int64_t count, std::int64_t index) {
  const std::int64_t each = of.extent / count, more = of.extent % count;
  return {of.first + each * index + std::min(index, more), each + (index < more ? 1 : 0),
          of.global};
}

Interval shard_interval(const Sharding& cut, const Mesh& mesh,
                        std::span<const std::uint32_t> coordinates) {
  Interval left = cut.interval;
  for (const std::uint32_t axis : cut.axes)
    left = shard_of(left, mesh.axes[axis].size, coordinates[axis]);
  return left;
}

AxisList axes_of(const Layout& layout, AxisLayout how, const Mesh& mesh) {
  AxisList axes;
  for (const Layout::Axis& axis : layout.axes) {
    if (axis.how == how) axes.push_back(static_cast<std::uint32_t>(mesh.find(axis.name)));
  }
  return axes;
}

AxisMask mask_of(const Layout& layout, AxisLayout how, const Mesh& mesh) {
  AxisMask mask = 0;
  for (const std::uint32_t axis : axes_of(layout, how, mesh)) mask |= AxisMask{1} << axis;
  return mask;
}

Layout layout_over(AxisMask axes, AxisLayout how, const Mesh& mesh) {
  Layout layout;
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
    if ((axes >> a & 1) != 0) layout.add(mesh.axes[a].name, how);
  }
  return layout;
}

Box box_of(const tensor::Type& type, const Layout& layout, const Mesh& mesh,
           std::span<const std::uint32_t> coordinates) {
  Box box;
  for (const tensor::Dim& dim : type.dims)
    box.push_back(shard_interval(
        {full_interval(dim.extent), axes_of(layout, AxisLayout::sharded(dim.name), mesh)}, mesh,
        coordinates));
  return box;
}

}  // namespace piper
