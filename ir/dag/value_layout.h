#pragma once
// The layouts of the values of a DAG, from level placed on. Below it layouts are requests that
// apply where the devices have these axes, and extents are global.
//
//   layout_of(dag, {B.stage0.mb0, 2})     dp: +      a gradient: an all_reduce over dp is due
//   samples_of(dag, load.x.mb1, {0, 1})   6 +2 of 8  second microbatch, second half

#include <cstdint>
#include <optional>
#include <span>

#include "ir/dag/dag.h"
#include "ir/layout/box.h"

namespace piper::dag {

/// The layout of an output; messages, copies and sums keep that of their input. Outputs of other
/// nodes, except bodies and loads, are replicated.
LayoutId layout_of(const Dag& dag, Port port);
/// The axes along which a value is partial.
AxisMask summed_axes(const Dag& dag, Port port);

/// The axes that shard the samples of a body's values, in mesh order; nothing if it has no samples.
std::optional<AxisMask> sample_axes(const Dag& dag, const Body& body);
/// The samples of a chunk or load: split dimensions divide the batch, and axes shard each part.
Sharding sample_sharding(const Dag& dag, const Node& node);
/// The samples on the device at these coordinates.
Interval samples_of(const Dag& dag, const Node& node, std::span<const std::uint32_t> coordinates);
/// The layout of an input whose samples these axes shard.
LayoutId shard_samples(const Dag& dag, tensor::InputId input, AxisMask axes);

}  // namespace piper::dag
