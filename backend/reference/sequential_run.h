#pragma once
// The one-device run of a program: every node of its DAG for every device in turn, one after the
// other, on one thread.
//
// It shares only bodies, kernels and the order of additions with the program: no plan, streams,
// messages, arena or generated code. So a program must give the same bits (docs/execution.md
// section 6), and a difference is a bug in the unshared parts.
//
//   SequentialRun run(dag, host, seed);            // dag.level >= ordered
//   initialise(run.params());
//   run.step(scalars);   run.losses()[0];   run.values("head.0.out");   run.gradient("head.0.out");

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/kernel/kernel.h"
#include "ir/dag/dag.h"

namespace piper::backend {

/// The callbacks of the run.
struct SequentialHost {
  const PiperApi* api = nullptr;  // gemm, attend, attend_grad and fail are called
  void* runtime = nullptr;        // PiperRank::runtime of these calls
  /// Writes samples [first, first + samples) of a step of model input `input`; false if they cannot
  /// be read.
  std::function<bool(std::uint32_t input, std::uint64_t step, std::uint64_t first,
                     std::uint64_t samples, void* to)>
      load;
};

class SequentialRun {
 public:
  SequentialRun(const dag::Dag& dag, SequentialHost host, std::uint64_t seed);
  ~SequentialRun();
  SequentialRun(const SequentialRun&) = delete;
  SequentialRun& operator=(const SequentialRun&) = delete;

  /// One entry per parameter and owner, with its position in `state()`; the counted one of each
  /// parameter comes first.
  std::span<const PiperParam> params() const;
  unsigned char* state();

  /// Runs the next step; false if a call failed (the reason was passed to api->fail) or a load did.
  bool step(const PiperScalars& scalars);

  /// Loss sums per loss and microbatch of the last step, as reported, and the gradient norm.
  const std::vector<std::vector<double>>& loss_sums() const;
  double gradient_norm() const;

  /// A parameter at its counted owner, and its reduced gradient of the last step; row-major. Empty
  /// for an unknown name.
  std::vector<double> values(std::string_view name) const;
  std::vector<double> gradient(std::string_view name) const;
  /// Its moving average; empty without one.
  std::vector<double> average(std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace piper::backend
