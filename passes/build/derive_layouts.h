#pragma once
// Derive layouts: what each device will hold of every value of the model.
//
// Guarantees: inside a region that `replicate` names, what comes from outside and has samples is cut along them over its axes, parameters repeat, and every result follows from its
// operands by a row of the op table (`tensor::rows`). Where no row fits, a result repeats: `replicate` refuses such a program once it is known that the devices have the axis. The work is linear
// in the model.
//
//   replicate model over dp      x: dp: batch    w: repeats    x @ w: dp: batch    its sum over the batch: dp: +    the gradient of w: dp: +

#include <span>
#include <vector>

#include "ir/mesh.h"
#include "ir/tensor/graph.h"
#include "passes/build/pieces.h"

namespace piper::passes {

/// The layouts of a differentiated model that is cut into pieces.
class ModelLayouts {
 public:
  /// `axes[p]`: the axes over which directives divide the samples of piece p. The model must outlive this.
  ModelLayouts(const tensor::Graph& model, std::span<const std::uint32_t> piece_of, std::span<const AxisMask> axes, const Mesh& mesh);

  /// As it is made; of a leaf, which a piece has as it reads it: repeats.
  LayoutId of(tensor::ValueId value) const { return made_[value.index()]; }
  /// As a piece reads it: inputs of the model, and what pieces of other axes make, in the layout of the reader.
  LayoutId read_by(tensor::ValueId value, std::uint32_t piece) const;

 private:
  /// By a piece whose samples the axis divides.
  AxisShare read_on(tensor::ValueId value, std::size_t axis) const;
  void derive(const tensor::Node& node, std::uint32_t piece);

  const tensor::Graph& model_;
  const std::span<const std::uint32_t> piece_of_;
  const std::vector<AxisMask> axes_;  // per piece
  const Mesh mesh_;
  std::vector<bool> is_input_;        // per value, under any name
  std::vector<LayoutId> made_;        // per value
};

}  // namespace piper::passes
