#pragma once
// What each device holds of the values of a DAG, from level placed on. Below it layouts say what a value is cut over where its devices have these axes, and extents are whole.
//
//   layout_of(dag, {B.stage0.mb0, 2})     dp: +      a gradient: an all_reduce over dp is due
//   samples_of(dag, load.x.mb1, {0, 1})   6 +2 of 8  second microbatch, second half

#include <cstdint>
#include <optional>
#include <span>

#include "ir/dag/dag.h"
#include "ir/layout/box.h"

namespace piper::dag {

/// Of an output; what messages, copies and sums leave of what they take. Outputs of no body and no load but these repeat.
LayoutId layout_of(const Dag& dag, Port port);
/// The axes along which a value is a sum that is still to be added up.
AxisMask summed_axes(const Dag& dag, Port port);

/// The axes that cut the samples of a body's values, outermost in the order of the mesh; nothing where it works on none.
std::optional<AxisMask> sample_axes(const Dag& dag, const Body& body);
/// Of a chunk or load.
AxisMask sample_axes(const Dag& dag, const Node& node);
/// Which samples of the batch a chunk or load works on: split dimensions cut the batch, and axes what these leave.
Cut sample_cut(const Dag& dag, const Node& node);
/// On the device at these coordinates.
Stretch samples_of(const Dag& dag, const Node& node, std::span<const std::uint32_t> coordinates);
/// An input whose samples these axes cut.
LayoutId cut_samples(const Dag& dag, tensor::InputId input, AxisMask axes);

}  // namespace piper::dag
