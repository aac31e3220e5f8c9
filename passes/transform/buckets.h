#pragma once
// Buckets: groups parameters that are reduced and updated together.
//
// The owners of a parameter are the device sets whose work uses it; each keeps a copy. Parameters
// whose gradients are summed over devices (sharded samples, or several owners) share a bucket if
// owners and axes agree, in parameter order, up to a size. The others have one bucket per owner and
// chunk. Below level placed there are no owners yet, and buckets are the parameters of the same
// chunks.
//
// With sharded gradients a bucket has only parameters of the same chunks, so that all work of a
// gathered interval adds to all of them.
//
//   wte used by stage0 on cluster[pp: 0] and stage1 on cluster[pp: 1], both replicated over dp
//     ->  bucket {wte}, owners cluster[pp: 0], cluster[pp: 1], unreduced <dp: +>

#include <cstdint>
#include <span>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// The settings of directives for the buckets of a chunk's parameters.
struct BucketRules {
  std::int64_t bytes = 25 << 20;  // of one reduction
  // Axes that shard the states of `zero`, if the chunk's samples are sharded over them.
  AxisMask flat = 0;
  std::uint32_t zero = 0;  // 1: the optimizer state, 2: gradients too, 3: parameters too
  directive::Reduce reduced = directive::Reduce::step;
  std::uint32_t prefetch = 0;
  // of the `replicate` that shards them, else of one that copies them
  LocId line = {};
  friend bool operator==(const BucketRules&, const BucketRules&) = default;
};

/// Fills the buckets of a DAG below level placed.
void make_buckets(dag::Dag& dag);

/// Fills the buckets of a DAG whose compute nodes have devices; the axes of reductions follow from
/// the layouts of gradients. `rules` has one entry per chunk; the size limit of a parameter's first
/// user applies. False after reporting owners that overlap, make no gradient, or differ in the
/// sharding of their samples or state.
bool make_buckets(dag::Dag& dag, std::span<const BucketRules> rules, DiagnosticSink& sink);

}  // namespace piper::passes
