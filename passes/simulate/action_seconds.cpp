#include "passes/simulate/action_seconds.h"

#include <algorithm>

#include "ir/dag/local_type.h"
#include "passes/order/list_schedule.h"

namespace piper::passes {

using namespace dag;

namespace {

constexpr std::uint32_t kNone = Timeline::kNone;

}  // namespace

/// Bytes of a value; for a shard of a bucket or of its state those of all shards, of which
/// `fraction_of` is one device's fraction.
double ActionSeconds::bytes_of(Port port) const {
  const Node& maker = dag_.node(port.node);
  const double bytes = static_cast<double>(planned_bytes(dag_, port));
  const bool state =
      copies_to_or_from_host(maker.kind) || dag_.is_optimizer_state(maker, port.index);
  return state || dag_.leaves_shard(maker) ? bytes / fraction_of(maker) : bytes;
}

double ActionSeconds::bytes_of(const Node& node) const {
  double bytes = 0;
  std::uint32_t port = kNone;
  for (const Input& input : dag_.inputs_of(node)) {
    if (input.source.node.valid() && input.port != port) bytes += bytes_of(input.source);
    port = input.port;
  }
  return bytes;
}

ActionSeconds::ActionSeconds(const Dag& dag, const ActionCosts& costs)
    : dag_(dag), costs_(costs), body_work_(body_work(dag)) {}

std::optional<double> flops_of(const DeviceRates& rates, tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::f64: return rates.flops_f64;
    case tensor::DType::bf16: return rates.flops_bf16;
    default: return rates.flops_f32;
  }
}

double ActionSeconds::work(const Node& node, const DeviceRates& rates) const {
  const double efficiency = rates.efficiency.value_or(1);
  const double bytes_per_second =
      rates.bandwidth ? *rates.bandwidth * efficiency : costs_.rates.bytes;
  if (runs_body(node.kind)) {
    if (costs_.body[node.body.index()] >= 0) return costs_.body[node.body.index()];
    const std::optional<double> stated = flops_of(rates, dag_.settings.dtype);
    const tensor::Cost& work = body_work_[node.body.index()];
    return work.flops / (stated ? *stated * efficiency : costs_.rates.flops) +
           work.bytes / bytes_per_second;
  }
  const auto id = static_cast<std::size_t>(&node - dag_.nodes.data());
  if (!costs_.work.empty() && costs_.work[id] >= 0) return costs_.work[id];
  double bytes = bytes_of(node);
  for (std::uint32_t i = 0; i < node.num_outputs; ++i) {
    bytes += bytes_of(Port{NodeId::at(id), i});
  }
  // An optimizer reads and writes its slots, each of the size of the parameters. A moving average is
  // one more.
  const double slots = writes_state(node.kind) ? (dag_.settings.ema ? 3 : 2) : 1;
  return slots * bytes * fraction_of(node) / bytes_per_second;
}

/// The fraction of a bucket on which one device works: its shard if the state is sharded.
double ActionSeconds::fraction_of(const Node& node) const {
  const BucketId bucket = node.subject.bucket();
  return bucket.valid()
             ? 1 / static_cast<double>(dag_.extent(dag_.sharded_over(dag_.buckets[bucket.index()])))
             : 1;
}

AxisMask ActionSeconds::crossed(const Comm& comm) const {
  AxisMask crossed = comm.axes;
  const DeviceSet& first = dag_.device_sets[dag_.node(comm.members.front()).devices];
  for (const NodeId member : comm.members) {
    const DeviceSet& set = dag_.device_sets[dag_.node(member).devices];
    for (std::size_t axis = 0; axis < set.at.size(); ++axis) {
      if (set.at[axis] != first.at[axis]) crossed = static_cast<AxisMask>(crossed | 1u << axis);
    }
  }
  return crossed;
}

/// A ring of n devices takes 2 (n - 1) steps of 1/n of the bytes for an all-reduce, half of them
/// for a reduce-scatter or an all-gather, and n - 1 steps for a gather of lists. Over several links
/// each step takes as long as on the slowest.
TransferTime ActionSeconds::transfer(const Comm& comm) const {
  const Node& front = dag_.node(comm.members.front());
  double bytes = 0;
  for (const NodeId member : comm.members) bytes += bytes_of(dag_.node(member));
  // Optimizer state, which is there.
  if (returns_to_device(front.kind) && front.num_inputs == 0)
    bytes = bytes_of(Port{comm.members.front(), 0});
  const auto members = static_cast<double>(comm.members.size());
  double joined = members;
  for (std::size_t axis = 0; axis < dag_.mesh.axes.size(); ++axis) {
    if ((comm.axes >> axis & 1) != 0) joined *= dag_.mesh.axes[axis].size;
  }
  TransferTime time{costs_.rates.latency, 0, costs_.rates.bandwidth, crossed(comm)};
  bool any = false;
  for (std::size_t axis = 0; costs_.machine && axis < dag_.mesh.axes.size(); ++axis) {
    if ((time.axes >> axis & 1) == 0) continue;
    const auto& link = costs_.machine->axes[axis].link;
    const double latency = link ? link->latency : costs_.rates.latency,
                 bandwidth = link ? link->bandwidth : costs_.rates.bandwidth;
    time.latency = any ? std::max(time.latency, latency) : latency;
    time.bandwidth = any ? std::min(time.bandwidth, bandwidth) : bandwidth;
    any = true;
  }
  double steps = 1;
  switch (traits(front.kind).comm_op) {
    case CommOp::none: steps = 0; break;
    case CommOp::send:
    case CommOp::recv: break;
    case CommOp::offload:
    case CommOp::fetch: bytes *= fraction_of(front); break;
    case CommOp::all_gather_v:
    case CommOp::reduce_scatter:
    case CommOp::all_gather:
      steps = joined - 1;
      bytes /= joined;
      break;
    case CommOp::all_reduce:
      steps = 2 * (joined - 1);
      bytes *= fraction_of(front) / members / joined;
      break;
  }
  time.latency *= steps;
  time.bytes = bytes * steps;
  return time;
}

}  // namespace piper::passes
