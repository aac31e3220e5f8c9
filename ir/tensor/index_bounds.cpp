#include "ir/tensor/index_bounds.h"

#include <algorithm>

namespace piper::tensor {

std::vector<IndexBound> index_bounds(const Graph& graph) {
  std::vector<IndexBound> bounds;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != Op::lookup && node.op != Op::cross_entropy) continue;
    const auto operands = graph.operands(node);
    const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                    [&](const Input& one) { return one.value == operands[1]; });
    if (input == graph.inputs.end()) continue;
    IndexBound bound;
    bound.input = InputId::at(static_cast<std::size_t>(input - graph.inputs.begin()));
    bound.reader = NodeId::at(n);
    const std::vector<Dim>& dims = graph.type(operands[0]).dims;
    if (node.op == Op::lookup) {
      bound.bound = dims.front().extent;
    } else {
      const auto classes = std::find_if(
          dims.begin(), dims.end(), [&](const Dim& dim) { return dim.name == node.attrs.dims[0]; });
      bound.bound = classes == dims.end() ? 0 : classes->extent;
      if (node.attrs.ignore) bound.ignore = *node.attrs.ignore;
    }
    bounds.push_back(bound);
  }
  return bounds;
}

}  // namespace piper::tensor
