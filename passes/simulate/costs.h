#pragma once
// The costs of operations in `--cost` mode (docs/execution.md section 8): times of one microbatch
// on 1/P of the model, and the fractions of activations that are kept.

#include <optional>

namespace piper::passes {

/// The fraction of the model that a stage counts as.
enum class StageCosts : unsigned char {
  weighed,  // the cost of its operations by the op table
  equal,    // equal for all stages
};

struct OperationCosts {
  double f = 1, bi = 1, bw = 1;
  std::optional<double> b = {};  // bi + bw
  // An F and a B or BI of one overlap group, run together; none: one after the other.
  std::optional<double> pair = {};
  // Latency of an edge between devices, which occupies no device and is not scaled.
  double p2p = 0;
  double w = 1;                  // the fraction of the activations that BI leaves to BW
  std::optional<double> r = {};  // of a recomputed pass: f; no effect without recomputation
  double keep = 0;               // the fraction of its activations that its F keeps
  StageCosts stages = StageCosts::weighed;
};

}  // namespace piper::passes
