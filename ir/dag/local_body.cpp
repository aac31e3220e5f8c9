#include "ir/dag/local_body.h"

#include <algorithm>

#include "ir/layout/local.h"

namespace piper::dag {

namespace {

void add_distinct(std::vector<Sharding>& list, Sharding sharding) {
  if (std::find(list.begin(), list.end(), sharding) == list.end())
    list.push_back(std::move(sharding));
}

bool is_even(const Sharding& sharding, const Mesh& mesh) {
  std::int64_t shards = 1;
  for (const std::uint32_t axis : sharding.axes) shards *= mesh.axes[axis].size;
  return sharding.interval.extent % shards == 0;
}

}  // namespace

Body local_body(const Body& body, const Mesh& mesh, std::span<const std::uint32_t> coordinates) {
  Body result = body;
  tensor::Graph& graph = result.graph;
  const LayoutTable& layouts = graph.context().layouts;
  for (tensor::Value& value : graph.mutable_values()) {
    if (!value.layout.replicated())
      value.type = local(std::move(value.type), layouts[value.layout], mesh, coordinates);
  }
  for (tensor::Node& node : graph.mutable_nodes()) {
    if ((info(node.op).attributes & tensor::kShape) == 0) continue;
    const LayoutId layout = graph.value(graph.result(node)).layout;
    if (!layout.replicated())
      node.attrs.shape = local(std::move(node.attrs.shape), layouts[layout], mesh, coordinates);
  }
  return result;
}

std::vector<Sharding> uneven_shardings(const Body& body, const Mesh& mesh) {
  std::vector<Sharding> found;
  const LayoutTable& layouts = body.graph.context().layouts;
  for (const tensor::Value& value : body.graph.values()) {
    if (value.layout.replicated()) continue;
    for (const tensor::Dim& dim : value.type.dims) {
      Sharding sharding{full_interval(dim.extent),
                        axes_of(layouts[value.layout], AxisLayout::sharded(dim.name), mesh)};
      if (!is_even(sharding, mesh)) add_distinct(found, std::move(sharding));
    }
  }
  return found;
}

std::vector<Sharding> uneven_shardings(const Dag& dag) {
  std::vector<Sharding> found;
  if (dag.level < Level::placed) return found;
  for (const Body& body : dag.bodies) {
    for (Sharding& sharding : uneven_shardings(body, dag.mesh))
      add_distinct(found, std::move(sharding));
  }
  return found;
}

std::vector<std::int64_t> local_extents(std::span<const Sharding> shardings, const Mesh& mesh,
                                        std::span<const std::uint32_t> coordinates) {
  std::vector<std::int64_t> extents;
  for (const Sharding& sharding : shardings)
    extents.push_back(shard_interval(sharding, mesh, coordinates).extent);
  return extents;
}

}  // namespace piper::dag
