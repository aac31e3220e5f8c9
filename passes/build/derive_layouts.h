#pragma once
// Derives the layouts of all values of the model.
//
// Guarantees: inside a region that `replicate` names, values from outside are sharded along their
// samples over its axes, parameters are replicated, and every result follows from its operands by a
// row of the op table (`tensor::rows`). If no row fits, a result is replicated, and `replicate`
// refuses the program if the devices have the axis. The work is linear in the model.
//
//   replicate model over dp      x: dp: batch    w: repeats    x @ w: dp: batch    its sum over the batch: dp: +    the gradient of w: dp: +

#include <span>
#include <vector>

#include "ir/mesh.h"
#include "ir/tensor/graph.h"
#include "passes/build/segments.h"

namespace piper::passes {

/// The layouts of a differentiated model divided into segments.
class ModelLayouts {
 public:
  /// `axes[p]`: the axes over which directives shard the samples of segment p. The model must
  /// outlive this.
  ModelLayouts(const tensor::Graph& model, std::span<const std::uint32_t> segment_of,
               std::span<const AxisMask> axes, const Mesh& mesh);

  /// The layout of a value at its producer; replicated for a leaf, whose layout depends on the
  /// reader.
  LayoutId of(tensor::ValueId value) const { return layouts_[value.index()]; }
  /// The layout in which a segment reads a value: inputs of the model, and values of segments with
  /// other axes, have the layout of the reader.
  LayoutId read_by(tensor::ValueId value, std::uint32_t segment) const;

 private:
  /// The layout in a segment whose samples the axis shards.
  AxisLayout read_on(tensor::ValueId value, std::size_t axis) const;
  void derive(const tensor::Node& node, std::uint32_t segment);

  const tensor::Graph& model_;
  const std::span<const std::uint32_t> segment_of_;
  const std::vector<AxisMask> axes_;  // per segment
  const Mesh mesh_;
  std::vector<bool> is_input_;     // per value, under any name
  std::vector<LayoutId> layouts_;  // per value
};

}  // namespace piper::passes
