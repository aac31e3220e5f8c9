#pragma once
// Where the parameters of a bucket lie, and which part of its state a device keeps.
//
// A bucket is flat: parameter after parameter, each from a boundary on, as so many elements from the start of its parameters, its gradients and each slot of its
// optimizer state. Bytes differ: gradients and slots are of the wide type (dtypes.def). Where axes cut it (`Dag::cut_over`), it ends with so much padding that all blocks
// are equal and begin at a boundary. Padding stays 0. A device reduces and updates the block that these axes leave to it and keeps the optimizer state of that block alone;
// parameters and gradients have room for all, or as the layouts of the bucket say for their block too.
//
//   layer1.w f32[25], layer1.b f32[5], flat over dp: 4     offsets 0, 32     elements 64     block 16

#include <array>
#include <cstdint>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/layout/box.h"

namespace piper::dag {

/// Those of an optimizer, and a master.
inline constexpr std::int64_t kMostSlots = directive::Optimizer::kMaxSlots + 1;

/// What of a bucket lies on a device all the time. A slot is one value per parameter of the optimizer's state.
enum class BucketState : std::uint8_t { parameters, gradients, slot };

struct BucketLayout {
  tensor::DType parameters = tensor::DType::f32, sums = tensor::DType::f32;  // sums: gradients and slots
  std::vector<std::int64_t> offsets;  // elements, of each parameter inside the bucket
  std::int64_t elements = 0;          // padding included
  std::int64_t parts = 1;             // equal blocks
  std::int64_t slots = 0;             // of optimizer state
  std::array<bool, 3> cut{};          // of each state: a device has its block of it alone

  std::int64_t block() const { return elements / parts; }  // elements
  bool in_blocks(BucketState state) const { return cut[static_cast<std::size_t>(state)]; }
  // In bytes:
  std::int64_t parameter_bytes(std::int64_t of) const { return of * static_cast<std::int64_t>(tensor::dtype_bytes(parameters)); }
  std::int64_t sum_bytes(std::int64_t of) const { return of * static_cast<std::int64_t>(tensor::dtype_bytes(sums)); }
  std::int64_t bytes(BucketState state, std::int64_t of) const { return state == BucketState::parameters ? parameter_bytes(of) : sum_bytes(of); }
  /// On one device.
  std::int64_t extent(BucketState state) const { return bytes(state, in_blocks(state) ? block() : elements); }
  /// Of a parameter, from where that state begins. In a block parameters do not begin: which part of them is in it says the device's number.
  std::int64_t offset(BucketState state, std::size_t position) const { return in_blocks(state) ? 0 : bytes(state, offsets[position]); }
};

/// Slots of optimizer state that a parameter has: those of the optimizer, and the master of one that is narrow.
std::int64_t state_slots(const directive::Settings& settings, tensor::DType parameter);

BucketLayout bucket_layout(const Dag& dag, const Bucket& bucket);
/// The elements of a bucket, and the axes that cut what of it is cut: which block of it is a device's follows.
Cut bucket_cut(const Dag& dag, const Bucket& bucket);
/// One per bucket.
std::vector<BucketLayout> bucket_layouts(const Dag& dag);

/// The vectors whose squares a sum_squares of the bucket adds up, by their numbers of elements: every parameter, or one device's block.
std::vector<std::int64_t> squared_elements(const Dag& dag, const Bucket& bucket);

/// One number that a norm reads: position `index` among the sums of a bucket.
struct SquaredPart {
  tensor::ParamId first;  // of the parameters that it speaks of
  BucketId bucket;
  std::uint32_t index = 0;
};
/// In the order in which a norm adds them: a logical parameter counts once, in the order of the model, and a block as its bucket's first parameter.
std::vector<SquaredPart> norm_order(const Dag& dag);

/// Where a parameter stands: bucket and position in it. Invalid bucket: in none.
struct ParamPlace {
  BucketId bucket;
  std::uint32_t index = 0;
};
std::vector<ParamPlace> param_places(const Dag& dag);

}  // namespace piper::dag
