#include "passes/plan/sharded_table.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/dag/bucket_layout.h"
#include "passes/plan/traffic_table.h"

namespace piper::passes {

using namespace dag;

namespace {

bool any_sharded(const Dag& dag) {
  return !dag.forward_only && std::any_of(dag.buckets.begin(), dag.buckets.end(),
                                          [](const Bucket& bucket) { return bucket.sharded(); });
}

/// The sharded states, as the `zero` number of `replicate`.
int zero_of(const Bucket& bucket) {
  return !bucket.parameters.replicated()  ? 3
         : !bucket.gradients.replicated() ? 2
         : !bucket.state.replicated()     ? 1
                                          : 0;
}

std::int64_t parameter_bytes(const Dag& dag, const Bucket& bucket) {
  std::int64_t bytes = 0;
  for (const tensor::ParamId param : bucket.params) bytes += dag.param_types[param.index()].bytes();
  return bytes;
}

/// Bytes of gradients and optimizer slots per byte of parameters.
std::int64_t widening(const Dag& dag, const Bucket& bucket) {
  const BucketLayout layout = bucket_layout(dag, bucket);
  return layout.sum_bytes(1) / layout.parameter_bytes(1);
}

std::int64_t devices_of(const Dag& dag, const Bucket& bucket) {
  std::int64_t devices = 0;
  for (const DeviceSetId owner : bucket.owners)
    devices += static_cast<std::int64_t>(dag.device_sets[owner].devices(dag.mesh));
  return devices;
}

}  // namespace

std::vector<ShardedState> sharded_state(const Dag& dag) {
  std::vector<ShardedState> shares;
  if (!any_sharded(dag)) return shares;
  for (const Role& role : dag.plan->roles) {
    std::map<std::tuple<bool, AxisMask, int>, ShardedState> of_role;
    for (const Buffer& buffer : role.buffers) {
      if (!buffer.bucket.valid()) continue;
      const Bucket& bucket = dag.buckets[buffer.bucket.index()];
      const AxisMask flat = dag.sharded_over(bucket);
      ShardedState& share = of_role[{dag.frozen(bucket), flat, zero_of(bucket)}];
      share.frozen = dag.frozen(bucket);
      share.role = dag.context->text(role.name);
      share.zero = zero_of(bucket);
      share.flat = flat;
      share.members = dag.extent(flat);
      const auto part = static_cast<std::size_t>(buffer.cls == BufferClass::parameters  ? 0
                                                 : buffer.cls == BufferClass::gradients ? 1
                                                                                        : 2);
      share.planned[part] += buffer.bytes;
      if (part != 0) continue;
      share.parameters += parameter_bytes(dag, bucket);
      share.sums += widening(dag, bucket) * parameter_bytes(dag, bucket);
      share.slots = bucket_layout(dag, bucket).slots;
    }
    for (auto& [key, share] : of_role) {
      const auto kept = [&](int zero, std::int64_t bytes) {
        return share.zero >= zero ? bytes / share.members : bytes;
      };
      share.formula = {kept(3, share.parameters), share.frozen ? 0 : kept(2, share.sums),
                       share.slots * kept(1, share.sums)};
      shares.push_back(share);
    }
  }
  return shares;
}

std::vector<ShardedTraffic> sharded_traffic(const Dag& dag) {
  std::vector<ShardedTraffic> shares;
  if (!any_sharded(dag)) return shares;
  struct Counts {
    std::int64_t scatters = 0, sums = 0, gathers = 0;  // nodes
    std::array<std::int64_t, 2> bytes{};
  };
  std::vector<Counts> counts(dag.buckets.size());
  for (const Comm& comm : dag.comms) {
    const Node& front = dag.node(comm.members.front());
    if (!front.subject.bucket().valid() || copies_to_or_from_host(front.kind)) continue;
    Counts& own = counts[front.subject.bucket().index()];
    const bool gathers = gathers_shards(front.kind);
    ++(gathers ? own.gathers : reduces_to_shards(front.kind) ? own.scatters : own.sums);
    own.bytes[gathers ? 1 : 0] += bytes_sent(dag, comm);
  }
  std::map<std::tuple<bool, AxisMask, AxisMask, int>, ShardedTraffic> by_kind;
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    const Bucket& bucket = dag.buckets[b];
    if (!bucket.sharded() &&
        (dag.frozen(bucket) || (bucket.unreduced.replicated() && bucket.owners.size() < 2)))
      continue;
    const AxisMask flat = dag.sharded_over(bucket), reduce = dag.reduced_over(bucket);
    ShardedTraffic& share = by_kind[{dag.frozen(bucket), flat, reduce, zero_of(bucket)}];
    share.zero = zero_of(bucket);
    share.frozen = dag.frozen(bucket);
    share.flat = flat;
    share.reduce = reduce;
    const std::int64_t bytes = parameter_bytes(dag, bucket), sums = widening(dag, bucket) * bytes,
                       owners = static_cast<std::int64_t>(bucket.owners.size()),
                       devices = devices_of(dag, bucket);
    // A ring of k sends Psi (k - 1) for a reduce-scatter or an all-gather, and twice that for an
    // all-reduce; shards of Psi / k are all-reduced over the remaining axes.
    const std::int64_t cut = dag.extent(flat), rest = dag.extent(reduce & ~flat) * owners;
    const std::int64_t rings = devices / owners / cut;
    share.parameters += bytes;
    share.rings = std::max(share.rings, cut > 1 ? devices / cut : devices / rest);
    share.formula[0] += counts[b].scatters * rings * sums * (cut - 1) +
                        counts[b].sums * (devices / rest) * 2 * (sums / cut) * (rest - 1);
    share.formula[1] += counts[b].gathers * rings * bytes * (cut - 1);
    share.sums +=
        static_cast<double>(bytes * (cut > 1 ? counts[b].scatters : counts[b].sums * owners)) /
        static_cast<double>(owners);
    share.gathers += static_cast<double>(bytes * counts[b].gathers) / static_cast<double>(owners);
    for (const std::size_t part : {0, 1}) share.planned[part] += counts[b].bytes[part];
  }
  for (auto& [key, share] : by_kind) {
    share.sums /= static_cast<double>(std::max<std::int64_t>(share.parameters, 1));
    share.gathers /= static_cast<double>(std::max<std::int64_t>(share.parameters, 1));
    shares.push_back(share);
  }
  return shares;
}

}  // namespace piper::passes
