#pragma once
// The input of a forward-only program that has the weight of each sample, 1 or 0. The last batch of
// held-out data may be short: the program has one shape, so the batch is padded with samples of
// weight 0.
//
//   input sample.weight: f32[batch: 8*]      1 for a sample of the data, 0 for padding

#include <string_view>

#include "ir/dag/dag.h"

namespace piper::dag {

/// Unique, because inputs of programs have names without dots.
inline constexpr std::string_view kSampleWeight = "sample.weight";

/// Invalid if the program has none; it then runs only full batches.
tensor::InputId sample_weight(const Dag& dag);

}  // namespace piper::dag
