#pragma once
// Buckets: groups parameters that are reduced and updated together.
//
// The homes of a parameter are the device sets whose work uses it; each keeps a copy. Parameters whose gradients are summed over devices (homes with
// samples of their own, or several homes) share a bucket when homes and axes agree, in parameter order, up to a size. The others have one
// bucket per home and chunk. Below level placed there are no homes yet, and buckets are the parameters of the same chunks.
//
// Where gradients are cut a bucket holds parameters of the same chunks alone, so that all work of a run adds to all of them.
//
//   wte used by stage0 on cluster[pp: 0] and stage1 on cluster[pp: 1], both replicated over dp
//     ->  bucket {wte}, homes cluster[pp: 0], cluster[pp: 1], made <dp: +>

#include <cstdint>
#include <span>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// What directives say of the buckets of a chunk's parameters.
struct BucketRules {
  std::int64_t bytes = 25 << 20;  // of one reduction
  AxisMask flat = 0;              // axes that cut what `zero` says, if the chunk's samples are divided over them
  std::uint32_t zero = 0;         // 1: the optimizer state, 2: gradients too, 3: parameters too
  directive::Reduce reduced = directive::Reduce::step;
  std::uint32_t prefetch = 0;
  LocId line = {};                // of the `replicate` that cuts them, else of one that copies them
  friend bool operator==(const BucketRules&, const BucketRules&) = default;
};

/// Fills the buckets of a DAG below level placed.
void make_buckets(dag::Dag& dag);

/// Fills the buckets of a DAG whose compute nodes have devices; what is reduced over which axes follows from the layouts of gradients. `rules` has one entry per chunk; the size of a parameter's first user counts.
/// False after reporting homes that overlap, that make no gradient, or that cut their samples or their state differently.
bool make_buckets(dag::Dag& dag, std::span<const BucketRules> rules, DiagnosticSink& sink);

}  // namespace piper::passes
