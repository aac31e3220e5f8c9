// Work of an op: flops by op, bytes by operands and results.

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

double flops_per_element(Op op) {
  switch (op) {
      // clang-format off
    case Op::fill: case Op::rename: case Op::broadcast: case Op::permute: case Op::lookup:
    case Op::slice: case Op::pad: case Op::shift: case Op::concat: return 0;
    case Op::add: case Op::sub: case Op::mul: case Op::maximum: case Op::minimum: case Op::neg:
    case Op::scale: case Op::offset: case Op::square: case Op::relu: case Op::relu_grad:
    case Op::select_ge: case Op::select_lt: case Op::cast: case Op::sum: case Op::max:
    case Op::max_grad: case Op::lookup_grad: return 1;
    case Op::iota: case Op::piecewise: return 2;
    case Op::div: case Op::sqrt: case Op::rsqrt: return 4;
    case Op::rms_norm: case Op::rotary: return 4;
    case Op::layer_norm: return 6;
    case Op::rms_norm_grad: return 8;
    case Op::layer_norm_grad: return 12;
    case Op::softmax_grad: return 4;
    case Op::exp: case Op::log: return 10;
    case Op::tanh: case Op::sigmoid: case Op::gelu: case Op::silu: return 14;
    case Op::sin: case Op::cos: return 24;
    case Op::softplus: case Op::gelu_grad: case Op::silu_grad: return 20;
    case Op::dropout: return 12;
    case Op::softmax: case Op::log_softmax: case Op::log_softmax_grad: return 14;
    case Op::cross_entropy: case Op::cross_entropy_grad: return 12;
    // clang-format on
    // Counted by their products.
    case Op::contract:
    case Op::contract_add:
    case Op::attend:
    case Op::attend_grad: return 0;
  }
  return 0;
}

Cost cost(Op op, std::span<const Type> operands, std::span<const Type> results,
          const Attrs& attrs) {
  Cost cost;
  if (op == Op::rename) return cost;  // an alias: nothing is read or written
  double largest = 0;
  for (const auto& types : {operands, results}) {
    for (const Type& type : types) {
      cost.bytes += static_cast<double>(type.bytes());
      largest = std::max(largest, static_cast<double>(type.elements()));
    }
  }
  if (op == Op::lookup) {
    // Only the chosen rows of the table are read.
    cost.bytes =
        static_cast<double>(operands[1].bytes()) + 2.0 * static_cast<double>(results[0].bytes());
  } else if (op == Op::slice) {
    cost.bytes = 2.0 * static_cast<double>(results[0].bytes());
  } else if (op == Op::lookup_grad) {
    cost.flops = static_cast<double>(operands[1].elements());
  } else if (op == Op::contract || op == Op::contract_add) {
    double summed = 1;
    for (Symbol name : attrs.dims)
      summed *= static_cast<double>(operands[0].dims[*operands[0].find(name)].extent);
    cost.flops = 2.0 * static_cast<double>(results[0].elements()) * summed;
  } else if (op == Op::attend || op == Op::attend_grad) {
    // Two products in the forward pass (scores, mixing), five in the backward pass, which computes
    // the scores again.
    const Type& q = operands[0];
    const std::size_t rank = q.dims.size();
    const double scores =
        static_cast<double>(q.elements()) / static_cast<double>(q.dims[rank - 1].extent) *
        static_cast<double>(operands[1].dims[rank - 3].extent) * (attrs.causal ? 0.5 : 1.0);
    const double width = static_cast<double>(q.dims[rank - 1].extent),
                 value_width = static_cast<double>(operands[2].dims[rank - 1].extent);
    cost.flops = op == Op::attend ? scores * (2 * width + 2 * value_width + 14)
                                  : scores * (6 * width + 4 * value_width + 18);
  } else {
    cost.flops = flops_per_element(op) * largest;
  }
  return cost;
}

}  // namespace piper::tensor
