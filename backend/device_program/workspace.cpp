// What the plan must reserve for a node beside its operands.
#include "backend/device_program/device_program.h"
#include "backend/kernel/update_body.h"

namespace piper::backend {

std::int64_t workspace_bytes(const dag::Dag& dag, const dag::Node& node) {
  switch (node.kind) {
    case dag::NodeKind::chunk: return scratch_bytes(dag.bodies[node.body.index()]);
    case dag::NodeKind::norm: {
      std::size_t count = 0;
      for (const dag::Bucket& bucket : dag.buckets) count += bucket.params.size();
      return scratch_bytes(norm_body(*dag.context, count, dag.settings.optimizer ? dag.settings.optimizer->clip : std::nullopt));
    }
    case dag::NodeKind::sum_squares: {
      const dag::Bucket& bucket = dag.buckets[node.subject.bucket().index()];
      std::vector<std::int64_t> elements;
      for (const tensor::ParamId param : bucket.params) elements.push_back(dag.param_types[param.index()].elements());
      return scratch_bytes(sum_squares_body(*dag.context, dag.param_types[bucket.params.front().index()].dtype, elements));
    }
    // An update is one pointwise kernel in place: it keeps nothing in memory between.
    default: return 0;
  }
}

}  // namespace piper::backend
