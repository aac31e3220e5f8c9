// The workspace of a node beside its operands.
#include "backend/device_program/device_program.h"
#include "backend/kernel/update_body.h"
#include "ir/dag/bucket_layout.h"

namespace piper::backend {

namespace {

std::int64_t bytes_for(const dag::Dag& dag, const dag::Node& node, Target target) {
  switch (node.kind) {
    case dag::NodeKind::chunk: return scratch_bytes(dag.bodies[node.body.index()], target);
    case dag::NodeKind::norm: {
      return scratch_bytes(norm_body(*dag.context, norm_order(dag).size(), dag.settings), target);
    }
    case dag::NodeKind::sum_squares: {
      const dag::Bucket& bucket = dag.buckets[node.subject.bucket().index()];
      return scratch_bytes(sum_squares_body(*dag.context, bucket_layout(dag, bucket).sums,
                                            squared_elements(dag, bucket)),
                           target);
    }
    // An update is one pointwise kernel in place, without intermediate values in memory.
    case dag::NodeKind::update:
    case dag::NodeKind::load:
    case dag::NodeKind::count:
    case dag::NodeKind::accumulate:
    case dag::NodeKind::report:
    case dag::NodeKind::send:
    case dag::NodeKind::recv:
    case dag::NodeKind::offload:
    case dag::NodeKind::fetch:
    case dag::NodeKind::all_reduce:
    case dag::NodeKind::reduce_scatter:
    case dag::NodeKind::all_gather:
    case dag::NodeKind::all_gather_v: return 0;
  }
  return 0;
}

}  // namespace

dag::WorkspaceBytes workspace_bytes(Target target) {
  return
      [target](const dag::Dag& dag, const dag::Node& node) { return bytes_for(dag, node, target); };
}

}  // namespace piper::backend
