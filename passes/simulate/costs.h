#pragma once
// What operations cost in `--cost` mode (docs/execution.md section 8): times of one microbatch on one device share, 1/P of the model, and what is kept of activations.

#include <optional>

namespace piper::passes {

/// Which part of the model a stage counts as.
enum class StageCosts : unsigned char {
  weighed,  // what its operations cost by the op table
  equal,    // as much as any other
};

struct OperationCosts {
  double f = 1, bi = 1, bw = 1;
  std::optional<double> b = {};     // bi + bw
  std::optional<double> pair = {};  // an F and a B or BI of one overlap group, run together; none: one after the other
  double p2p = 0;                   // latency of an edge between devices, which occupies nobody and is not scaled
  double w = 1;                     // the part of the activations that BI leaves to BW
  std::optional<double> r = {};     // of a recomputed pass: f; no effect where nothing is recomputed
  double keep = 0;                  // of its activations, what its F keeps
  StageCosts stages = StageCosts::weighed;
};

}  // namespace piper::passes
