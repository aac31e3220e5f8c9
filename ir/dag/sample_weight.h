#pragma once
// The input of a forward-only program that says of each sample whether it counts. The last batch of held-out data may be short: the program has one shape, so the batch is filled up with
// samples that count 0.
//
//   input sample.weight: f32[batch: 8*]      1 of a sample of the data, 0 of one that fills up the batch

#include <string_view>

#include "ir/dag/dag.h"

namespace piper::dag {

/// No input of a program has a name with a dot.
inline constexpr std::string_view kSampleWeight = "sample.weight";

/// Invalid: the program has none. It then runs whole batches alone.
tensor::InputId sample_weight(const Dag& dag);

}  // namespace piper::dag
