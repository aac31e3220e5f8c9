#pragma once
// Surround: gives the compute nodes what stands around them: loads of inputs, sums of gradients, updates of parameters, counts and reports of losses.
//
//   chunks alone   ->   load.tokens.mb0 -> F.stage0.mb0      B.stage0.mb0 -> accumulate.stage0.0 -> update.stage0.0 -> (next step) F.stage0.mb0
//                       F.stage1.mb0 -> report.gpt.loss.0

#include <span>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::passes {

/// Removes all but the compute nodes, then adds loads, sums, updates, counts and reports as of the DAG's level (below communicating), with its
/// buckets: one update per home, and one accumulate of its gradients. That and the ports of reports read all contributions, on whatever devices they are made. A forward-only
/// program has no updates. The passes up to `communicate` leave it to who looks at their result.
void surround(dag::Dag& dag);

/// Connects every read of a parameter with what leaves it on the same devices: `left_by[b][h]` is the update, or the gather behind it, of bucket b at home h (one,
/// where the bucket has no homes); or the gather that makes cut parameters whole in this very step. Without one (a forward-only program) the edge names the parameter's
/// position in its bucket alone.
void connect_params(dag::Dag& dag, std::span<const std::vector<dag::NodeId>> left_by);

/// What reads all outputs of a node reads on its first ports.
std::vector<dag::Input> reads_of(const dag::Dag& dag, dag::NodeId node);

/// Adds the accumulate of a bucket at a home, with these contributions in bucket order, and gives what reads the sums; nothing of none.
std::vector<dag::Input> accumulate(dag::Dag& dag, dag::BucketId bucket, DeviceSetId devices, std::span<const dag::Input> contributions);

/// All contributions to gradients, by parameter and home.
class Contributions {
 public:
  explicit Contributions(const dag::Dag& dag);
  /// In order of node and port. Where the bucket has no homes, `home` is 0.
  std::span<const dag::Port> of(dag::BucketId bucket, std::size_t position, std::size_t home) const {
    const std::size_t slot = first_slot_[bucket.index()] + position * homes_[bucket.index()] + home;
    return {ports_.data() + first_[slot], first_[slot + 1] - first_[slot]};
  }

 private:
  std::vector<std::size_t> first_slot_, homes_;  // per bucket
  std::vector<std::size_t> first_;               // per slot
  std::vector<dag::Port> ports_;
};

}  // namespace piper::passes
