#pragma once
// A body: the localised tensor graph of a chunk and pass, shared by all its microbatches, copies
// and ranks.
//
//   body @stage0.F(%tokens: data i64[batch: 4*, seq: 128], %token: param f32[vocab: 256, dim: 64])
//     -> (%x: data f32[batch: 4*, seq: 128, dim: 64], %h: saved f32[...])

#include <vector>

#include "ir/tensor/graph.h"

namespace piper::dag {

using BodyId = Id<struct BodyTag>;

/// The kind of value that a port of a body carries.
enum class PortKind : std::uint8_t {
  data,  // activations and their adjoints that another region needs; inputs of the model
  // Kept within a chunk: outputs that only its later passes read (F for B, BI for BW); inputs that
  // an earlier pass of it made or received.
  saved,
  param,     // a parameter (inputs only)
  grad,      // a contribution to a parameter's gradient (outputs only): added to the accumulator
  loss_sum,  // the sum of a loss over this body's samples (outputs only)
  // The number of elements of a masked loss that count over the whole batch (inputs only).
  count,
};
std::string_view port_kind_name(PortKind kind);

struct BodyPort {
  PortKind kind = PortKind::data;
  tensor::ValueId value;  // in the body's graph
  // In the model's graph: ports that carry the same global value connect; for `grad`: the
  // parameter's value.
  tensor::ValueId global_value;
  tensor::ParamId param;  // param and grad
  tensor::LossId loss;    // loss_sum and count
  tensor::InputId input;  // data inputs that a Load feeds
};

struct Body {
  Symbol name;  // `stage0.F`
  tensor::Graph graph;
  std::vector<BodyPort> inputs;
  std::vector<BodyPort> outputs;
};

}  // namespace piper::dag
