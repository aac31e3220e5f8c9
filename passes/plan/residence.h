#pragma once
// Where values live: whose bytes an output takes on each device that has it. Buffers, operands and sizes of a plan follow from this alone.
//
//   F.stage0.mb0:1        activations: itself
//   B.stage0.mb1:2        gradients of bucket stage0.0 from byte 512 on, added: accumulate.stage0.0:1 is there, of which this is the second term
//   B.b.mb1:2             of gradients that are cut unreduced: accumulate.b.0.B.b.mb1:0 from byte 512 on
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
  dag::Port owner;          // whose bytes these are; invalid: state of `bucket`
  dag::BucketId bucket;
  std::int64_t offset = 0;  // bytes from where the owner begins, or that state of the bucket
  std::int64_t extent = 0;  // bytes of all of the owner, or of that state
  bool adds = false;        // a term of a sum, and not the first
};

/// Of a DAG in which nothing crosses devices. It must outlive them; orders and streams, which another thread may be writing, are not read. Several threads may ask.
class Residences {
 public:
  explicit Residences(const dag::Dag& dag);

  /// Of an output: the value as it is when the step has made it.
  Residence of(dag::Port port) const;
  /// Of what an input of class param reads; position: of the parameter in its bucket.
  Residence parameter(dag::BucketId bucket, std::uint32_t position) const { return state(dag::BufferClass::parameters, dag::BucketState::parameters, bucket, position); }
  /// The same of an input that no node of this program feeds.
  Residence parameter(tensor::ParamId param) const { return parameter(params_[param.index()].bucket, params_[param.index()].index); }
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
  Residence state(dag::BufferClass cls, dag::BucketState state, dag::BucketId bucket, std::uint32_t position) const;
  Residence of_sum(dag::Port port) const;

  const dag::Dag& dag_;
  std::vector<dag::BucketLayout> layouts_;
  std::vector<dag::ParamPlace> params_;
  std::vector<std::vector<std::int64_t>> body_bytes_;  // per body and output
  std::vector<std::uint32_t> first_bytes_;             // per node, one more: into bytes_, of those that run no body
  std::vector<std::int64_t> bytes_;                    // of outputs that are values of the step
  std::vector<std::uint32_t> first_term_;              // per node: into terms_; kNone: it makes none
  std::vector<Term> terms_;                            // per output of those that do
  llvm::DenseSet<std::pair<std::uint32_t, std::uint32_t>> shared_;  // outputs that are added up over devices and read by others, too
};

}  // namespace piper::passes
