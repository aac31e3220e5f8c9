#include "passes/plan/traffic_table.h"

#include <map>
#include <utility>

#include "ir/dag/bucket_layout.h"
#include "ir/dag/local_type.h"
#include "ir/dag/text_names.h"

namespace piper::passes {

using namespace dag;

namespace {

/// The content of a communication.
std::string carried(const Node& node) {
  if (is_message(node.kind)) return std::string(pass_name(node.pass));
  switch (node.subject.kind()) {
    case SubjectKind::bucket:
      return copies_to_or_from_host(node.kind) ? "optimizer state"
             : gathers_shards(node.kind)       ? "parameters"
                                               : "gradients";
    case SubjectKind::loss: return "losses";
    case SubjectKind::count: return "counts";
    case SubjectKind::norm: return "norm";
    case SubjectKind::nothing:
    case SubjectKind::input: break;
  }
  return "activations";
}

/// The bytes of a copy to or from the host, or of a message, on all devices together.
std::int64_t bytes_copied(const Dag& dag, const Comm& comm) {
  const NodeId id = comm.members.front();
  const Node& node = dag.node(id);
  std::int64_t bytes = 0;
  for (std::uint32_t i = 0; i < node.num_outputs; ++i) bytes += bytes_on_all_devices(dag, {id, i});
  if (node.num_outputs > 0) return bytes;
  for (const Input& input : dag.inputs_of(node)) bytes += bytes_on_all_devices(dag, input.source);
  return bytes;
}

}  // namespace

std::int64_t bytes_sent(const Dag& dag, const Comm& comm) {
  const Node& front = dag.node(comm.members.front());
  if (copies_to_or_from_host(front.kind) || is_message(front.kind)) return bytes_copied(dag, comm);
  std::int64_t contributed = 0;  // by one device of each member set
  for (const NodeId member : comm.members) {
    if (const BucketId bucket = dag.node(member).subject.bucket();
        bucket.valid() && dag.buckets[bucket.index()].sharded()) {
      const BucketLayout layout = bucket_layout(dag, dag.buckets[bucket.index()]);
      const std::int64_t moved =
          reduces_to_all(dag.node(member).kind) ? layout.block() : layout.elements;
      contributed += gathers_shards(dag.node(member).kind) ? layout.parameter_bytes(moved)
                                                           : layout.sum_bytes(moved);
      continue;
    }
    std::uint32_t port = 0xFFFFFFFFu;
    for (const Input& input : dag.inputs_of(dag.node(member))) {
      if (input.port != port) contributed += planned_bytes(dag, input.source);
      port = input.port;
    }
  }
  const std::int64_t devices =
      static_cast<std::int64_t>(dag.device_sets[front.devices].devices(dag.mesh));
  std::int64_t joined = 1;  // devices of one set that take part together
  for (std::size_t i = 0; i < dag.mesh.axes.size(); ++i) {
    if ((comm.axes >> i & 1) != 0) joined *= dag.mesh.axes[i].size;
  }
  const std::int64_t groups = devices / joined;
  const std::int64_t members = joined * static_cast<std::int64_t>(comm.members.size());
  switch (traits(front.kind).comm_op) {
    case CommOp::none:
    case CommOp::offload:
    case CommOp::fetch:
    case CommOp::send:
    case CommOp::recv: break;
    case CommOp::all_gather_v: return groups * joined * contributed * (members - 1);
    // Each of n devices sends (n - 1) / n of the bucket.
    case CommOp::reduce_scatter:
    case CommOp::all_gather: return groups * (members - 1) * contributed;
    // A ring sends every element 2 (n - 1) / n times from each of n devices; every member set holds
    // as much.
    case CommOp::all_reduce:
      return groups * 2 * (members - 1) *
             (contributed / static_cast<std::int64_t>(comm.members.size()));
  }
  return 0;
}

std::vector<TrafficRow> traffic_table(const Dag& dag) {
  const std::vector<std::string> names = communicator_names(dag, *dag.plan);
  std::vector<TrafficRow> rows;
  for (std::size_t c = 0; c < dag.plan->communicators.size(); ++c) {
    const Communicator& communicator = dag.plan->communicators[c];
    std::map<std::pair<NodeKind, std::string>, std::size_t> own;  // rows of this communicator
    for (const CommId id : communicator.comms) {
      const Comm& comm = dag.comms[id.index()];
      const Node& front = dag.node(comm.members.front());
      const auto [known, added] = own.emplace(std::pair(front.kind, carried(front)), rows.size());
      if (added) {
        const std::string stream =
            communicator.stream.valid()
                ? std::string(dag.context->text(dag.streams[communicator.stream.index()].name))
                : "";
        rows.push_back(
            {names[c], communicator.members, stream, front.kind, known->first.second, 0, 0});
      }
      TrafficRow& row = rows[known->second];
      ++row.operations;
      row.bytes += bytes_sent(dag, comm);
    }
  }
  return rows;
}

}  // namespace piper::passes
