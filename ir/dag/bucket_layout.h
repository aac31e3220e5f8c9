#pragma once
// The offsets of parameters in a bucket, and the shard of its state on a device.
//
// A bucket is flat: parameter after parameter, each aligned, at the same element offset in its
// parameters, its gradients and each slot of its optimizer state. Byte offsets differ: gradients
// and slots have the wide type (dtypes.def). If axes shard it (`Dag::sharded_over`), padding at its
// end makes all shards equal and aligned. Padding stays 0. A device reduces and updates its own
// shard and keeps the optimizer state of that shard alone; whether parameters and gradients are
// full or sharded is up to the layouts of the bucket.
//
//   layer1.w f32[25], layer1.b f32[5], flat over dp: 4     offsets 0, 32     elements 64     block 16

#include <array>
#include <cstdint>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/layout/box.h"

namespace piper::dag {

/// Slots of an optimizer, the moving average and the master weights.
inline constexpr std::int64_t kMaxStateSlots = directive::Optimizer::kMaxSlots + 2;

/// The state of a bucket that is always on a device. A slot is one tensor of optimizer state per
/// parameter.
enum class BucketState : std::uint8_t { parameters, gradients, slot };

struct BucketLayout {
  // sums: gradients and slots.
  tensor::DType parameters = tensor::DType::f32, sums = tensor::DType::f32;
  std::vector<std::int64_t> offsets;  // elements, of each parameter inside the bucket
  std::int64_t elements = 0;          // padding included
  std::int64_t parts = 1;             // number of equal shards
  std::int64_t slots = 0;             // of optimizer state
  std::array<bool, 3> is_sharded{};   // per state: whether a device has only its shard

  std::int64_t block() const { return elements / parts; }  // elements
  bool sharded(BucketState state) const { return is_sharded[static_cast<std::size_t>(state)]; }
  // In bytes:
  std::int64_t parameter_bytes(std::int64_t of) const {
    return of * static_cast<std::int64_t>(tensor::dtype_bytes(parameters));
  }
  std::int64_t sum_bytes(std::int64_t of) const {
    return of * static_cast<std::int64_t>(tensor::dtype_bytes(sums));
  }
  std::int64_t bytes(BucketState state, std::int64_t of) const {
    return state == BucketState::parameters ? parameter_bytes(of) : sum_bytes(of);
  }
  /// Bytes on one device.
  std::int64_t extent(BucketState state) const {
    return bytes(state, sharded(state) ? block() : elements);
  }
  /// Bytes from the start of the state to a parameter. 0 in a shard, because the part of a
  /// parameter in it depends on the device.
  std::int64_t offset(BucketState state, std::size_t position) const {
    return sharded(state) ? 0 : bytes(state, offsets[position]);
  }
};

/// Slots of optimizer state that a parameter has: those of the optimizer, the moving average, and the
/// master weights of a narrow one.
std::int64_t state_slots(const directive::Settings& settings, tensor::DType parameter);

/// 1 + the slot of the moving average; 0 without one.
std::uint32_t average_slot(const directive::Settings& settings);

BucketLayout bucket_layout(const Dag& dag, const Bucket& bucket);
/// The interval of a bucket's elements and the axes that shard it.
Sharding bucket_sharding(const Dag& dag, const Bucket& bucket);
/// One per bucket.
std::vector<BucketLayout> bucket_layouts(const Dag& dag);

/// Whether trained parameters of the program differ from 1 in their factors of the learning rate,
/// and, if there is weight decay, in those of the weight decay.
struct Tuning {
  bool rates = false, decays = false;
};
Tuning tuning_of(const Dag& dag);
/// The factors of a bucket's elements. Padding has those of the parameter before it. If both change,
/// their pieces end at the same elements.
tensor::Pieces rate_factors(const Dag& dag, const Bucket& bucket);
tensor::Pieces decay_factors(const Dag& dag, const Bucket& bucket);

/// The lengths of the vectors whose squares a sum_squares of the bucket adds up: every parameter,
/// or one device's shard.
std::vector<std::int64_t> squared_elements(const Dag& dag, const Bucket& bucket);

/// One number that a norm reads: position `index` among the sums of a bucket.
struct SquaredPart {
  tensor::ParamId first;  // first parameter that it covers
  BucketId bucket;
  std::uint32_t index = 0;
};
/// In the order in which a norm adds them: a logical parameter counts once, in model order, and a
/// shard as its bucket's first parameter.
std::vector<SquaredPart> norm_order(const Dag& dag);

/// The bucket of a parameter and its position in it. Invalid bucket: in none.
struct BucketPosition {
  BucketId bucket;
  std::uint32_t index = 0;
};
std::vector<BucketPosition> bucket_positions(const Dag& dag);

}  // namespace piper::dag
