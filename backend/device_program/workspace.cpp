// The workspace of a node beside its operands.
#include <algorithm>
#include <set>
#include <vector>

#include "backend/device_program/device_program.h"
#include "backend/kernel/update_body.h"
#include "ir/dag/bucket_layout.h"
#include "ir/dag/local_body.h"

namespace piper::backend {

namespace {

/// The largest workspace that a device needs for a body.
std::int64_t chunk_bytes(const dag::Dag& dag, const dag::Body& body, Target target) {
  const std::vector<Sharding> shardings = uneven_shardings(body, dag.mesh);
  std::set<std::vector<std::int64_t>> seen;
  std::int64_t bytes = 0;
  // Without uneven shardings all devices are alike.
  const std::uint64_t devices = shardings.empty() ? 1 : dag.mesh.devices();
  for (std::uint64_t rank = 0; rank < devices; ++rank) {
    const std::vector<std::uint32_t> at = coordinates_of(dag.mesh, rank);
    if (seen.insert(dag::local_extents(shardings, dag.mesh, at)).second)
      bytes = std::max(bytes, scratch_bytes(local_body(body, dag.mesh, at), target));
  }
  return bytes;
}

std::int64_t bytes_for(const dag::Dag& dag, const dag::Node& node, Target target) {
  switch (node.kind) {
    case dag::NodeKind::chunk: return chunk_bytes(dag, dag.bodies[node.body.index()], target);
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
