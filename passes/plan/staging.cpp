#include "passes/plan/staging.h"

#include <algorithm>

#include "ir/dag/bucket_layout.h"

namespace piper::passes {

using namespace dag;

namespace {

std::int64_t divided_up(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

/// Whether the devices of a role are in a set.
bool in_set(const DeviceSet& set, const Role& role) {
  for (std::size_t a = 0; a < set.at.size(); ++a) {
    if (set.at[a] != DeviceSet::kWhole && set.at[a] != role.at[a]) return false;
  }
  return true;
}

/// The number of elements of a parameter in a shard of its bucket.
std::int64_t elements_in(const BucketLayout& layout, std::int64_t shard, std::int64_t offset,
                         std::int64_t elements) {
  const std::int64_t first = shard * layout.block(), end = first + layout.block();
  return std::max<std::int64_t>(0, std::min(end, offset + elements) - std::max(first, offset));
}

std::int64_t staging_of(const Dag& dag, const Bucket& bucket) {
  const BucketLayout layout = bucket_layout(dag, bucket);
  const auto devices =
      static_cast<std::int64_t>(dag.device_sets[bucket.owners.front()].devices(dag.mesh));
  // Master weights stand for the values.
  const bool masters = layout.slots > 0 && layout.sums != layout.parameters;
  // Bytes per element that all devices hold, and that each holds for its shard alone.
  std::int64_t everywhere = 0, in_shards = 0;
  (layout.sharded(BucketState::parameters) ? in_shards : everywhere) +=
      masters ? 0 : layout.parameter_bytes(1);
  (layout.sharded(BucketState::slot) ? in_shards : everywhere) +=
      layout.slots * layout.sum_bytes(1);
  std::int64_t largest = 0;
  for (std::int64_t shard = 0; shard < layout.parts; ++shard) {
    std::int64_t bytes = 0;
    for (std::size_t p = 0; p < bucket.params.size(); ++p) {
      const std::int64_t elements = dag.param_types[bucket.params[p].index()].elements();
      bytes += everywhere * divided_up(elements, devices) +
               in_shards * divided_up(elements_in(layout, shard, layout.offsets[p], elements),
                                      devices / layout.parts);
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace

std::int64_t staging_bytes(const Dag& dag, const Role& role) {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : dag.buckets) {
    if (in_set(dag.device_sets[bucket.owners.front()], role)) bytes += staging_of(dag, bucket);
  }
  return bytes;
}

std::int64_t planned_staging(const Dag& dag, const Role& role) {
  return dag.settings.checkpoint ? staging_bytes(dag, role) : 0;
}

}  // namespace piper::passes
