#include "ir/layout/local.h"

#include "ir/layout/box.h"

namespace piper {

tensor::Type local(tensor::Type type, const Layout& layout, const Mesh& mesh,
                   std::span<const std::uint32_t> coordinates) {
  const Box box = box_of(type, layout, mesh, coordinates);
  for (std::size_t d = 0; d < box.size(); ++d) type.dims[d].extent = box[d].extent;
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
