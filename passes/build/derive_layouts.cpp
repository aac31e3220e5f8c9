#include "passes/build/derive_layouts.h"

#include <algorithm>

#include "ir/tensor/op_rules.h"

namespace piper::passes {

using namespace tensor;

namespace {

AxisLayout shard_along_samples(const Type& type) {
  const Dim* const samples = type.samples();
  return samples == nullptr ? AxisLayout() : AxisLayout::sharded(samples->name);
}

/// The row of these operands. An op that adds dimensions has several: the one whose results are
/// sharded along their samples. Nothing if there is none.
const Row* row_for(std::span<const Row> rows, std::span<const AxisLayout> operands,
                   std::span<const AxisLayout> along_samples) {
  const Row* fits = nullptr;
  for (const Row& row : rows) {
    if (!std::equal(row.operands.begin(), row.operands.end(), operands.begin(), operands.end()))
      continue;
    if (fits == nullptr || std::equal(row.results.begin(), row.results.end(), along_samples.begin(),
                                      along_samples.end()))
      fits = &row;
  }
  return fits;
}

}  // namespace

ModelLayouts::ModelLayouts(const Graph& model, std::span<const std::uint32_t> segment_of,
                           std::span<const AxisMask> axes, const Mesh& mesh)
    : model_(model),
      segment_of_(segment_of),
      axes_(axes.begin(), axes.end()),
      mesh_(mesh),
      is_input_(model.values().size()),
      layouts_(model.values().size()) {
  for (const Input& input : model.inputs) is_input_[input.value.index()] = true;
  for (std::size_t v = 0; v < is_input_.size(); ++v)
    is_input_[v] = is_input_[named_leaf(model, ValueId::at(v)).index()];
  if (std::all_of(axes_.begin(), axes_.end(), [](AxisMask of_segment) { return of_segment == 0; }))
    return;
  NodePolls polls(model.context().cancellation);
  for (std::size_t n = 0; n < model.nodes().size(); ++n) {
    polls.visit();
    const std::uint32_t segment = segment_of[n];
    if (segment != Segments::kNone && axes_[segment] != 0) derive(model.nodes()[n], segment);
  }
}

AxisLayout ModelLayouts::read_on(ValueId value, std::size_t axis) const {
  if (is_input_[value.index()]) return shard_along_samples(model_.type(value));
  const NodeId maker = model_.value(value).def;
  if (!maker.valid()) return {};
  if ((axes_[segment_of_[maker.index()]] >> axis & 1) == 0)
    return shard_along_samples(model_.type(value));
  return model_.context().layouts[layouts_[value.index()]].on(mesh_.axes[axis].name);
}

LayoutId ModelLayouts::read_by(ValueId value, std::uint32_t segment) const {
  Layout layout;
  for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
    if ((axes_[segment] >> axis & 1) != 0) layout.add(mesh_.axes[axis].name, read_on(value, axis));
  }
  return model_.context().layouts.intern(std::move(layout));
}

void ModelLayouts::derive(const Node& node, std::uint32_t segment) {
  std::vector<Type> operands, results;
  for (const ValueId operand : model_.operands(node)) operands.push_back(model_.type(operand));
  llvm::SmallVector<AxisLayout, 3> along_samples;
  for (std::size_t i = 0; i < node.num_results; ++i) {
    results.push_back(model_.type(model_.result(node, i)));
    along_samples.push_back(shard_along_samples(results.back()));
  }
  const std::vector<Row> rows = tensor::rows(node.op, operands, results, node.attrs);
  std::vector<Layout> layouts(node.num_results);
  llvm::SmallVector<AxisLayout, 4> given;
  for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
    if ((axes_[segment] >> axis & 1) == 0) continue;
    given.clear();
    for (const ValueId operand : model_.operands(node)) given.push_back(read_on(operand, axis));
    const Row* const row = row_for(rows, given, along_samples);
    for (std::size_t i = 0; i < node.num_results; ++i)
      layouts[i].add(mesh_.axes[axis].name, row != nullptr ? row->results[i] : AxisLayout());
  }
  for (std::size_t i = 0; i < node.num_results; ++i)
    layouts_[model_.result(node, i).index()] =
        model_.context().layouts.intern(std::move(layouts[i]));
}

}  // namespace piper::passes
