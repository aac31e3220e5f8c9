#include "ir/dag/value_layout.h"

#include <algorithm>

namespace piper::dag {

namespace {

/// The samples of a value, and its layout.
struct Samples {
  Symbol dim;
  LayoutId layout;
};

std::optional<Samples> samples_in(const Body& body) {
  for (const tensor::Value& value : body.graph.values()) {
    if (const tensor::Dim* const samples = value.type.samples())
      return Samples{samples->name, value.layout};
  }
  return std::nullopt;
}

std::optional<Samples> samples_in(const Dag& dag, const Node& node) {
  if (runs_body(node.kind)) return samples_in(dag.bodies[node.body.index()]);
  if (!node.subject.input().valid()) return std::nullopt;
  const tensor::Dim* const samples = dag.input_types[node.subject.input().index()].samples();
  return samples == nullptr ? std::nullopt : std::optional(Samples{samples->name, node.layout});
}

/// Below level placed layouts are requests, and values have global extents.
AxisMask axes_that(const Dag& dag, LayoutId layout, AxisLayout how) {
  return layout.replicated() || dag.level < Level::placed
             ? 0
             : mask_of(dag.context->layouts[layout], how, dag.mesh);
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
    case NodeKind::recv:
      return layout_of(
          dag, source_of(dag, dag.node(dag.comms[node.comm.index()].members.front()), port.index));
    case NodeKind::accumulate:
    case NodeKind::offload:
    case NodeKind::fetch: {
      const Port source = source_of(dag, node, port.index);
      return source.node.valid() ? layout_of(dag, source) : LayoutId();
    }
    // Reduced over all axes along which its inputs are partial, or no value of the model; whether a
    // bucket is flat is in its axes.
    case NodeKind::count:
    case NodeKind::sum_squares:
    case NodeKind::norm:
    case NodeKind::update:
    case NodeKind::report:
    case NodeKind::send:
    case NodeKind::all_reduce:
    case NodeKind::reduce_scatter:
    case NodeKind::all_gather:
    case NodeKind::all_gather_v: return {};
  }
  return {};
}

AxisMask summed_axes(const Dag& dag, Port port) {
  return axes_that(dag, layout_of(dag, port), AxisLayout::partial());
}

std::optional<AxisMask> sample_axes(const Dag& dag, const Body& body) {
  const std::optional<Samples> samples = samples_in(body);
  return samples ? std::optional(axes_that(dag, samples->layout, AxisLayout::sharded(samples->dim)))
                 : std::nullopt;
}

Sharding sample_sharding(const Dag& dag, const Node& node) {
  Sharding cut;
  for (const tensor::Type& type : dag.input_types) {
    if (const tensor::Dim* const dim = type.samples()) cut.interval = full_interval(dim->extent);
  }
  for (std::size_t d = 0; d < dag.dims.size() && d < kMaxSplitDims; ++d) {
    if (node.instance.at[d] != Instance::kNone)
      cut.interval = shard_of(cut.interval, dag.dims[d].extent, node.instance.at[d]);
  }
  const std::optional<Samples> samples = samples_in(dag, node);
  if (samples && dag.level >= Level::placed)
    cut.axes =
        axes_of(dag.context->layouts[samples->layout], AxisLayout::sharded(samples->dim), dag.mesh);
  return cut;
}

Interval samples_of(const Dag& dag, const Node& node, std::span<const std::uint32_t> coordinates) {
  return shard_interval(sample_sharding(dag, node), dag.mesh, coordinates);
}

LayoutId shard_samples(const Dag& dag, tensor::InputId input, AxisMask axes) {
  const tensor::Dim* const samples = dag.input_types[input.index()].samples();
  return samples == nullptr ? LayoutId()
                            : dag.context->layouts.intern(
                                  layout_over(axes, AxisLayout::sharded(samples->name), dag.mesh));
}

}  // namespace piper::dag
