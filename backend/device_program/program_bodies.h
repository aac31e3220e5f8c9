#pragma once
// The kernel bodies of a program set: chunks with equal work and extents, and the updates, sums of
// squares and norms of buckets of one shape, share a body.
//
//   ProgramBodies bodies(dag, Target::cpu, set.bodies);
//   bodies.chunk(dag.node(node).body, coordinates)     // made at the first call; its position in set.bodies

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/kernel/kernel.h"
#include "ir/dag/bucket_layout.h"
#include "ir/layout/box.h"

namespace piper::backend {

class ProgramBodies {
 public:
  /// Appends bodies for `target` to `list`. `dag` and `list` must outlive it.
  ProgramBodies(const dag::Dag& dag, Target target, std::vector<KernelBody>& list);

  /// The functions below return the position of a body in the list, and append the body at the
  /// first call.

  /// The body of a chunk on the devices with these coordinates: one per extents of its boxes.
  std::uint32_t chunk(dag::BodyId body, std::span<const std::uint32_t> coordinates);
  /// The update of a bucket. `elements`: of the bucket, or of a shard of it.
  std::uint32_t update(const dag::Bucket& bucket, std::int64_t elements);
  /// The sums of squares of a bucket's gradients.
  std::uint32_t sum_squares(const dag::Bucket& bucket);
  /// The norm of all gradients, from the sums of squares in `norm_order`.
  std::uint32_t norm();

  /// The sums of squares that the norm adds, in this order.
  const std::vector<dag::SquaredPart>& norm_order() const { return norm_order_; }
  /// The optimizer of the DAG; the default one if the DAG has none.
  const directive::Optimizer& optimizer() const { return optimizer_; }
  /// The body at a position of the list; valid until the next body is appended.
  const KernelBody& operator[](std::uint32_t body) const { return list_[body]; }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  /// Appends the body under this name and returns its position. The shapes of its library calls
  /// get their numbers.
  std::uint32_t add(KernelBody body, std::string_view name);

  const dag::Dag& dag_;
  const Target target_;
  std::vector<KernelBody>& list_;
  directive::Optimizer optimizer_;
  /// The bodies of a chunk, by the extents of its uneven boxes.
  struct ChunkBodies {
    std::vector<Sharding> shardings;
    std::map<std::vector<std::int64_t>, std::uint32_t> bodies;
  };
  std::vector<ChunkBodies> of_chunk_;
  /// The body of the updates with these factors.
  struct Made {
    std::optional<tensor::Pieces> rates, decays;
    std::uint32_t body = 0;
  };
  // By sharded states (BucketLayout::is_sharded) and elements.
  std::map<std::pair<std::array<bool, 3>, std::int64_t>, std::vector<Made>> updates_;
  std::size_t num_updates_ = 0;
  std::map<std::pair<bool, std::vector<std::int64_t>>, std::uint32_t> sums_;
  std::vector<dag::SquaredPart> norm_order_;
  std::uint32_t norm_ = kNone;
  std::vector<PiperCallShape> shapes_;  // distinct, by number
};

}  // namespace piper::backend
