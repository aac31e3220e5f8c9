#pragma once
// The memory of values: the value or state in whose bytes an output is stored on its devices.
// Buffers, operands and sizes of a plan follow from this alone.
//
//   F.stage0.mb0:1        activations: itself
//   B.stage0.mb1:2        gradients of bucket stage0.0 from byte 512 on, added: the second term of accumulate.stage0.0:1, which is there
//   B.b.mb1:2             sharded gradients, unreduced: accumulate.b.0.B.b.mb1:0 from byte 512 on
//   gather.b.0.F.b.mb0:1  gathered: gather.b.0.F.b.mb0:0 from byte 512 on
//   all_reduce.loss.0     activations: F.stage1.mb0:1, which nothing else reads

#include <cstdint>
#include <vector>

#include "ir/dag/bucket_layout.h"
#include "ir/dag/plan.h"
#include "llvm/ADT/DenseSet.h"

namespace piper::passes {

struct Residence {
  dag::BufferClass cls = dag::BufferClass::activations;
  dag::Port owner;  // the value whose bytes these are; invalid: state of `bucket`
  dag::BucketId bucket;
  std::int64_t offset = 0;  // bytes from the start of the owner, or of that state
  std::int64_t extent = 0;  // bytes of the owner, or of that state
  bool adds = false;        // a term of a sum after the first
};

/// For a DAG without edges between devices, which must outlive this. Orders and streams are not
/// read, because another thread may be writing them. Queries are thread-safe.
class Residences {
 public:
  explicit Residences(const dag::Dag& dag);

  /// The residence of an output.
  Residence of(dag::Port port) const;
  /// The residence of an input of class param; `position` is that of the parameter in its bucket.
  Residence parameter(dag::BucketId bucket, std::uint32_t position) const {
    return state(dag::BufferClass::parameters, dag::BucketState::parameters, bucket, position);
  }
  /// The same for an input without a source node in this program.
  Residence parameter(tensor::ParamId param) const {
    return parameter(params_[param.index()].bucket, params_[param.index()].index);
  }
  const dag::BucketLayout& layout(dag::BucketId bucket) const { return layouts_[bucket.index()]; }

 private:
  /// The sum of which an output is a term.
  struct Term {
    dag::Port sum;  // invalid: none
    bool adds = false;
  };

  void find_terms();
  void find_shared();
  void measure();
  Residence state(dag::BufferClass cls, dag::BucketState state, dag::BucketId bucket,
                  std::uint32_t position) const;
  Residence of_sum(dag::Port port) const;

  const dag::Dag& dag_;
  std::vector<dag::BucketLayout> layouts_;
  std::vector<dag::BucketPosition> params_;
  std::vector<std::vector<std::int64_t>> body_bytes_;  // per body and output
  // Per node, one more: into bytes_, for nodes without a body.
  std::vector<std::uint32_t> first_bytes_;
  std::vector<std::int64_t> bytes_;  // of outputs that are values of the step
  // Per node: into terms_; kNone: none of its outputs is a term.
  std::vector<std::uint32_t> first_term_;
  std::vector<Term> terms_;  // per output of the other nodes
  // Outputs that are reduced over devices and also read otherwise.
  llvm::DenseSet<std::pair<std::uint32_t, std::uint32_t>> shared_;
};

}  // namespace piper::passes
