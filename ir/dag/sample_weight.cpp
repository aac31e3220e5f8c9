#include "ir/dag/sample_weight.h"

namespace piper::dag {

tensor::InputId sample_weight(const Dag& dag) {
  for (std::size_t i = 0; i < dag.inputs.size() && dag.forward_only; ++i) {
    if (dag.context->text(dag.inputs[i].name) == kSampleWeight) return tensor::InputId::at(i);
  }
  return {};
}

}  // namespace piper::dag
