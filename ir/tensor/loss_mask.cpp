#include "ir/tensor/loss_mask.h"

#include <algorithm>

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

namespace {

class MaskFinder {
 public:
  explicit MaskFinder(const Graph& graph) : graph_(graph), of_(graph.values().size()) {}

  MaskFound find(ValueId elements) {
    std::vector<bool> needed(graph_.nodes().size(), false);
    if (const NodeId def = graph_.value(elements).def; def.valid()) needed[def.index()] = true;
    for (std::size_t n = graph_.nodes().size(); n-- > 0;) {
      if (!needed[n]) continue;
      for (const ValueId operand : graph_.operands(graph_.nodes()[n])) {
        if (const NodeId def = graph_.value(operand).def; def.valid()) needed[def.index()] = true;
      }
    }
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (!needed[n]) continue;
      MaskFound found = visit(graph_.nodes()[n]);
      if (!found.error.empty()) return found;
      if (found.targets.valid()) of_[graph_.nodes()[n].first_result] = found;
    }
    const MaskFound& found = of_[elements.index()];
    if (found.targets.valid() &&
        graph_.type(graph_.inputs[found.targets.index()].value).elements() !=
            graph_.type(elements).elements()) {
      return failed("a loss with `ignore` has one element per target, and this is `" +
                    show(elements) + "`");
    }
    return found;
  }

 private:
  static MaskFound failed(std::string why) { return {{}, 0, std::move(why)}; }
  std::string show(ValueId value) const {
    return print(graph_.type(value), graph_.context().symbols);
  }

  MaskFound visit(const Node& node) const {
    const auto operands = graph_.operands(node);
    const MaskFound* masked = nullptr;
    std::size_t position = 0, count = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (const MaskFound& found = of_[operands[i].index()]; found.targets.valid())
        masked = &found, position = i, ++count;
    }
    if (masked != nullptr) {
      const bool keeps = node.op == Op::mul || node.op == Op::scale || node.op == Op::neg ||
                         node.op == Op::cast || node.op == Op::rename || node.op == Op::broadcast ||
                         node.op == Op::permute || (node.op == Op::div && position == 0);
      if (keeps && count == 1) return *masked;
      return failed(
          in_words(node.op) +
          " mixes elements whose target is ignored with others, so it is not known how many count");
    }
    if (node.op != Op::cross_entropy || !node.attrs.ignore) return {};
    ValueId targets = operands[1];
    // Integers are only renamed.
    while (graph_.value(targets).def.valid())
      targets = graph_.operands(graph_.node(graph_.value(targets).def))[0];
    return {graph_.input_of(targets), *node.attrs.ignore, {}};
  }

  const Graph& graph_;
  std::vector<MaskFound> of_;  // per value
};

}  // namespace

MaskFound find_loss_mask(const Graph& graph, ValueId elements) {
  const auto ignores = [](const Node& node) { return node.attrs.ignore.has_value(); };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), ignores)) return {};
  return MaskFinder(graph).find(elements);
}

}  // namespace piper::tensor
