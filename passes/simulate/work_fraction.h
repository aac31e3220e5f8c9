#pragma once
// The fraction of the model's work in a chunk.
//
//   a train                   by flops and bytes of the op table, also for regions and recomputation
//   a schedule by itself      by the links of the chain that represents a model, each with one weight
//   StageCosts::equal         1/S for one of S stages: 4 stages on 2 ranks are 1/4 each, which is 2/4 of a rank's 1/2

#include <array>
#include <vector>

#include "ir/dag/dag.h"
#include "passes/simulate/costs.h"

namespace piper::passes {

class WorkFractions {
 public:
  WorkFractions(const dag::Dag& dag, StageCosts stages);

  /// The fraction of a pass over the whole model that one run of a chunk's pass does for one
  /// microbatch; for one of q slices 1/q of that. A run without microbatches counts as all of them.
  /// The fractions of a pass add up to 1, or for backwards to the trained fraction of the model.
  double of(const dag::Node& node, Pass pass) const {
    return of_[static_cast<std::size_t>(pass)][node.chunk.index()] * instance_factor(node.instance);
  }

 private:
  double instance_factor(const dag::Instance& instance) const;

  const dag::Dag& dag_;
  std::array<std::vector<double>, kPasses> of_;  // by pass, per chunk
};

}  // namespace piper::passes
