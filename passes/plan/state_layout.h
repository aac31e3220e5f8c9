#pragma once
// Where the state of a rank lies: parameters, gradients and optimizer slots of its buckets, at the front of the arena.
//
//   [parameters of bucket 0 | its gradients | its optimizer slots] [bucket 1 ...]
//
// A function of the buckets alone, so that the training program and the held-out program of one rank agree. A bucket is flat; each parameter starts
// at a multiple of 64 bytes, at the same offset in parameters, gradients and each slot.

#include <cstdint>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::passes {

struct BucketLayout {
  std::vector<std::int64_t> offsets;  // of each parameter inside the bucket
  std::int64_t bytes = 0;             // of the flat bucket
};

/// One per bucket.
std::vector<BucketLayout> bucket_layouts(const dag::Dag& dag);

/// Optimizer slots per parameter: 2 for adamw, 1 for sgd with momentum, else 0.
std::uint32_t optimizer_slots(const directive::Settings& settings);

/// Where a parameter stands: bucket and position in it. Invalid bucket: in none.
struct ParamPlace {
  dag::BucketId bucket;
  std::uint32_t index = 0;
};
std::vector<ParamPlace> param_places(const dag::Dag& dag);

}  // namespace piper::passes
