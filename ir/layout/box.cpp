#include "ir/layout/box.h"

#include <algorithm>

namespace piper {

Stretch block(const Stretch& of, std::int64_t count, std::int64_t index) {
  const std::int64_t each = of.extent / count, more = of.extent % count;
  return {of.first + each * index + std::min(index, more), each + (index < more ? 1 : 0), of.global};
}

AxisMask mask_of(const Layout& layout, AxisShare how, const Mesh& mesh) {
  AxisMask mask = 0;
  for (const Layout::Axis& axis : layout.axes) {
    if (axis.how == how) mask |= AxisMask{1} << mesh.find(axis.name);
  }
  return mask;
}

Layout layout_over(AxisMask axes, AxisShare how, const Mesh& mesh) {
  Layout layout;
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
    if ((axes >> a & 1) != 0) layout.add(mesh.axes[a].name, how);
  }
  return layout;
}

Stretch part(Stretch of, const Layout& layout, AxisShare how, const Mesh& mesh, std::span<const std::uint32_t> coordinates) {
  for (const Layout::Axis& each : layout.axes) {
    if (each.how != how) continue;
    const std::size_t axis = mesh.find(each.name);
    of = block(of, mesh.axes[axis].size, coordinates[axis]);
  }
  return of;
}

Box box_of(const tensor::Type& type, const Layout& layout, const Mesh& mesh, std::span<const std::uint32_t> coordinates) {
  Box box;
  for (const tensor::Dim& dim : type.dims) box.push_back(part(whole(dim.extent), layout, AxisShare::cut(dim.name), mesh, coordinates));
  return box;
}

}  // namespace piper
