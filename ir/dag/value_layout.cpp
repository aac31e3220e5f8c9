#include "ir/dag/value_layout.h"

#include <algorithm>

namespace piper::dag {

namespace {

const tensor::Dim* sampled_dim(const tensor::Type& type) {
  const auto found = std::find_if(type.dims.begin(), type.dims.end(), [](const tensor::Dim& dim) { return dim.sampled; });
  return found == type.dims.end() ? nullptr : &*found;
}

AxisMask axes_cutting(const Dag& dag, LayoutId layout, Symbol dim) {
  if (layout.repeats() || dag.level < Level::placed) return 0;
  AxisMask mask = 0;
  for (const std::size_t axis : axes_with(dag.context->layouts[layout], AxisShare::cut(dim), dag.mesh)) mask |= AxisMask{1} << axis;
  return mask;
}

Port source_of(const Dag& dag, const Node& reader, std::uint32_t port) {
  for (const Input& input : dag.inputs_of(reader)) {
    if (input.port == port) return input.source;
  }
  return {};
}

}  // namespace

LayoutId layout_of(const Dag& dag, Port port) {
  const Node& node = dag.node(port.node);
  switch (node.kind) {
    case NodeKind::chunk: {
      const Body& body = dag.bodies[node.body.index()];
      return body.graph.value(body.outputs[port.index].value).layout;
    }
    case NodeKind::load: return node.layout;
    case NodeKind::recv: return layout_of(dag, source_of(dag, dag.node(dag.comms[node.comm.index()].members.front()), port.index));
    case NodeKind::offload:
    case NodeKind::fetch: {
      const Port source = source_of(dag, node, port.index);
      return source.node.valid() ? layout_of(dag, source) : LayoutId();
    }
    // Reduced over all axes of which its inputs are summands, or nothing of the model: what of a bucket is flat its axes say.
    case NodeKind::count:
    case NodeKind::sum_squares:
    case NodeKind::norm:
    case NodeKind::update:
    case NodeKind::report:
    case NodeKind::send:
    case NodeKind::all_reduce:
    case NodeKind::reduce_scatter:
    case NodeKind::gather:
    case NodeKind::all_gather: return {};
  }
  return {};
}

AxisMask summed_axes(const Dag& dag, Port port) {
  const LayoutId layout = layout_of(dag, port);
  return layout.repeats() || dag.level < Level::placed ? 0 : mask_of(dag.context->layouts[layout], Share::partial, dag.mesh);
}

std::optional<AxisMask> sample_axes(const Dag& dag, const Body& body) {
  for (const tensor::Value& value : body.graph.values()) {
    if (const tensor::Dim* const samples = sampled_dim(value.type)) return axes_cutting(dag, value.layout, samples->name);
  }
  return std::nullopt;
}

AxisMask sample_axes(const Dag& dag, const Node& node) {
  if (runs_body(node.kind)) return sample_axes(dag, dag.bodies[node.body.index()]).value_or(0);
  if (!node.subject.input().valid()) return 0;
  const tensor::Dim* const samples = sampled_dim(dag.input_types[node.subject.input().index()]);
  return samples == nullptr ? 0 : axes_cutting(dag, node.layout, samples->name);
}

Stretch samples_of(const Dag& dag, const Node& node, std::span<const std::uint32_t> coordinates) {
  Stretch samples;
  for (const tensor::Type& type : dag.input_types) {
    if (const tensor::Dim* const dim = sampled_dim(type)) samples = whole(dim->extent);
  }
  for (std::size_t d = 0; d < dag.dims.size() && d < kMaxSplitDims; ++d) {
    if (node.instance.at[d] != Instance::kNone) samples = block(samples, dag.dims[d].extent, node.instance.at[d]);
  }
  const AxisMask axes = sample_axes(dag, node);
  for (std::size_t a = 0; a < dag.mesh.axes.size(); ++a) {
    if ((axes >> a & 1) != 0) samples = block(samples, dag.mesh.axes[a].size, coordinates[a]);
  }
  return samples;
}

LayoutId cut_samples(const Dag& dag, tensor::InputId input, AxisMask axes) {
  Layout layout;
  if (const tensor::Dim* const samples = sampled_dim(dag.input_types[input.index()])) {
    for (std::size_t a = 0; a < dag.mesh.axes.size(); ++a) {
      if ((axes >> a & 1) != 0) layout.add(dag.mesh.axes[a].name, AxisShare::cut(samples->name));
    }
  }
  return dag.context->layouts.intern(std::move(layout));
}

}  // namespace piper::dag
