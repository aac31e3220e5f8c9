#include "ir/dag/local_type.h"

#include "ir/dag/value_layout.h"
#include "ir/layout/local.h"

namespace piper::dag {

tensor::Type local_type(const Dag& dag, Port port, std::span<const std::uint32_t> coordinates) {
  const tensor::Type& type = dag.output_type(port);
  return dag.level < Level::placed
             ? type
             : local(type, dag.context->layouts[layout_of(dag, port)], dag.mesh, coordinates);
}

tensor::Type largest_part(const Dag& dag, const tensor::Type& type, LayoutId layout) {
  if (layout.replicated() || dag.level < Level::placed) return type;
  const llvm::SmallVector<std::uint32_t, 8> first(dag.mesh.axes.size(), 0);
  return local(type, dag.context->layouts[layout], dag.mesh, {first.data(), first.size()});
}

std::int64_t planned_bytes(const Dag& dag, Port port) {
  return largest_part(dag, dag.output_type(port), layout_of(dag, port)).bytes();
}

std::int64_t bytes_on_all_devices(const Dag& dag, Port port) {
  const DeviceSet& devices = dag.device_sets[dag.node(port.node).devices];
  const std::int64_t shards =
      dag.extent(sharding_axes(dag.context->layouts[layout_of(dag, port)], dag.mesh));
  return dag.output_type(port).bytes() *
         (static_cast<std::int64_t>(devices.devices(dag.mesh)) / shards);
}

}  // namespace piper::dag
