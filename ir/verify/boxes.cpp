#include "ir/verify/boxes.h"

namespace piper::verify {

using dag::Dag;
using dag::Level;

std::int64_t largest_bytes(const Dag& dag, const tensor::Type& type, LayoutId layout) {
  auto bytes = static_cast<std::int64_t>(tensor::dtype_bytes(type.dtype));
  for (const tensor::Dim& dim : type.dims) {
    std::int64_t positions = dim.extent;
    for (const Layout::Axis& axis : dag.context->layouts[layout].axes) {
      const std::size_t at = dag.mesh.find(axis.name);
      if (dag.level < Level::placed || at == dag.mesh.axes.size() ||
          axis.how != AxisLayout::sharded(dim.name))
        continue;
      const auto members = static_cast<std::int64_t>(dag.mesh.axes[at].size);
      positions = (positions + members - 1) / members;
    }
    bytes *= positions;
  }
  return bytes;
}

std::int64_t shards_of(const Dag& dag, LayoutId layout) {
  std::int64_t shards = 1;
  for (const Layout::Axis& axis : dag.context->layouts[layout].axes) {
    const std::size_t at = dag.mesh.find(axis.name);
    if (axis.how.kind == LayoutKind::sharded && at != dag.mesh.axes.size())
      shards *= dag.mesh.axes[at].size;
  }
  return shards;
}

}  // namespace piper::verify
