#pragma once
// Which part of the model's work a chunk is: 1/S of it where it is one of S stages, whatever its size.
//
//   4 stages on 2 ranks: 1/4 each, which is 2/4 of a device share; without stages by flops and bytes of the op table

#include <array>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::passes {

class Shares {
 public:
  explicit Shares(const dag::Dag& dag);

  /// The part of its pass over the whole model that one run of a chunk's pass does for one microbatch; for one of q slices 1/q of that. What is not split into
  /// microbatches does all of them.
  double of(const dag::Node& node, Pass pass) const { return of_[static_cast<std::size_t>(pass)][node.chunk.index()] * instance_factor(node.instance); }

 private:
  double instance_factor(const dag::Instance& instance) const;

  const dag::Dag& dag_;
  std::array<std::vector<double>, kPasses> of_;  // by pass, per chunk
};

}  // namespace piper::passes
