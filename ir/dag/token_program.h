#pragma once
// A language model that reads one token at a time: the program of `piper sample`.
//
// `tables` runs once and makes the values that depend on no token, such as the angles of rotary
// positions. `step` runs for one token at one position: the sequence of every value has extent 1.
// A causal `attend` of the model is one of `step` with a single key, which its executor appends to
// a cache: the query attends over all keys of the cache up to its position.
//
//   %x = lookup(%token, %tokens) : f32[batch: 32*, seq: 128, dim: 64]      ->  f32[batch: 1*, seq: 1, dim: 64]
//   %y = add(%x, %position)            // weight f32[seq: 128, dim: 64]     ->  its row at the position, f32[seq: 1, dim: 64]
//   %a = attend(%q, %k, %v) {causal}                                        ->  attend(%q, %k, %v), cached

#include <cstdint>
#include <vector>

#include "ir/dag/body.h"

namespace piper::dag {

struct TokenProgram {
  /// A value that `step` reads beside its token.
  struct Source {
    tensor::ParamId param;    // of the model; invalid: an output of `tables`
    std::uint32_t table = 0;  // position among these outputs
    // A value along the positions: `blocks` times `positions` rows of `row_elements`. The step
    // reads the row of its position in each block. 0: the step reads the whole value.
    std::int64_t row_elements = 0;
    std::int64_t blocks = 1;
  };

  Body tables;  // inputs: parameters of the model, by BodyPort::param
  Body step;    // inputs: the token i64[batch: 1*, seq: 1], then one per source; output: the logits
  std::vector<Source> sources;
  std::vector<Symbol> cached;   // values of `step` that a cached `attend` defines, in graph order
  std::int64_t positions = 0;   // the extent of the sequence in the model
  std::int64_t vocabulary = 0;  // the tokens that it can read: [0, vocabulary)
  std::int64_t classes = 0;     // the number of logits
};

}  // namespace piper::dag
