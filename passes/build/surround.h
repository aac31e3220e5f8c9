#pragma once
// Adds the nodes around compute nodes: loads of inputs, sums of gradients, updates of parameters,
// counts and reports of losses.
//
//   chunks alone   ->   load.tokens.mb0 -> F.stage0.mb0      B.stage0.mb0 -> accumulate.stage0.0 -> update.stage0.0 -> (next step) F.stage0.mb0
//                       F.stage1.mb0 -> report.gpt.loss.0

#include <span>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::passes {

/// Removes all but the compute nodes, then adds loads, sums, updates, counts and reports for the
/// DAG's level (below communicating), with its buckets: one update per owner, and one accumulate of
/// its gradients. Accumulates and reports read all contributions, from any devices. A forward-only
/// program has no updates. Passes before `communicate` do not call this; it is called to verify or
/// print their results.
void surround(dag::Dag& dag);

/// Connects every read of a parameter with its producer on the same devices: `left_by[b][h]` is the
/// update of bucket b at owner h (one if the bucket has no owners), or the all-gather after it, or
/// for parameters sharded at rest the all-gather of this step. Without one (a forward-only program)
/// the edge has only the parameter's position in its bucket.
void connect_params(dag::Dag& dag, std::span<const std::vector<dag::NodeId>> left_by);

/// Edges that read all outputs of a node, on the first ports.
std::vector<dag::Input> reads_of(const dag::Dag& dag, dag::NodeId node);

/// Adds the accumulate of a bucket at an owner, with these contributions in bucket order, and
/// returns edges that read its sums; none without contributions.
std::vector<dag::Input> accumulate(dag::Dag& dag, dag::BucketId bucket, DeviceSetId devices,
                                   std::span<const dag::Input> contributions);

/// All contributions to gradients, by parameter and owner.
class Contributions {
 public:
  explicit Contributions(const dag::Dag& dag);
  /// In order of node and port. `owner` is 0 if the bucket has no owners.
  std::span<const dag::Port> of(dag::BucketId bucket, std::size_t position,
                                std::size_t owner) const {
    const std::size_t slot =
        first_slot_[bucket.index()] + position * owners_[bucket.index()] + owner;
    return {ports_.data() + first_[slot], first_[slot + 1] - first_[slot]};
  }

 private:
  std::vector<std::size_t> first_slot_, owners_;  // per bucket
  std::vector<std::size_t> first_;                // per slot
  std::vector<dag::Port> ports_;
};

}  // namespace piper::passes
