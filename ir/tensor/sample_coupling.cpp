#include "ir/tensor/sample_coupling.h"

#include <algorithm>
#include <vector>

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

bool couples_samples(const Graph& graph, const Node& node, std::span<const ValueId> loss_sums) {
  std::vector<Type> operands, results;
  for (const ValueId operand : graph.operands(node)) operands.push_back(graph.type(operand));
  for (std::size_t i = 0; i < node.num_results; ++i)
    results.push_back(graph.type(graph.result(node, i)));
  switch (sampling(node.op, operands, results, node.attrs)) {
    case Sampling::independent: return false;
    case Sampling::summed:
      return std::find(loss_sums.begin(), loss_sums.end(), graph.result(node)) == loss_sums.end();
    case Sampling::coupled: return true;
  }
  return true;
}

const Node* coupled_operation(const Graph& graph, std::span<const ValueId> loss_sums) {
  const auto found =
      std::find_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
        return node.pass == Pass::F && couples_samples(graph, node, loss_sums);
      });
  return found == graph.nodes().end() ? nullptr : &*found;
}

}  // namespace piper::tensor
