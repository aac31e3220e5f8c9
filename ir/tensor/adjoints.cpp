// Derivative rules: the backward ops of one forward op.

#include <algorithm>

#include "ir/tensor/op_rules.h"

namespace piper::tensor {

namespace {

class AdjointRule {
 public:
  AdjointRule(const AdjointRequest& request, const Emit& emit)
      : graph_(request.graph), request_(request), emit_(emit) {
    const Node& node = request.node;
    const auto operands = graph_.operands(node);
    operands_.assign(operands.begin(), operands.end());
    attrs_ = node.attrs;  // a copy: `emit` may move the graph's storage
    op_ = node.op;
    for (std::size_t i = 0; i < node.num_results; ++i) results_.push_back(graph_.result(node, i));
    adjoints_.resize(operands_.size());
  }

  std::vector<ValueId> run();

 private:
  bool wanted(std::size_t i) const { return request_.wanted[i]; }
  ValueId x(std::size_t i = 0) const { return operands_[i]; }
  ValueId y() const { return results_[0]; }
  ValueId dy() const { return request_.dy[0]; }
  const Type& type(ValueId value) const { return graph_.type(value); }

  /// One op on behalf of operand `for_`.
  ValueId op(Op op, std::vector<ValueId> operands, Attrs attrs = {}) { return emit_(op, std::move(operands), std::move(attrs), for_, 0); }
  ValueId op(Op op, std::vector<ValueId> operands, double scalar) {
    Attrs attrs;
    attrs.scalar = scalar;
    return this->op(op, std::move(operands), std::move(attrs));
  }
  ValueId op(Op op, std::vector<ValueId> operands, std::vector<Symbol> dims) {
    Attrs attrs;
    attrs.dims = std::move(dims);
    return this->op(op, std::move(operands), std::move(attrs));
  }

  /// Sums what the operand lacks (it was broadcast) and restores its memory order.
  ValueId fit(ValueId value, ValueId operand);
  void give(std::size_t i, ValueId value) { adjoints_[i] = fit(value, x(i)); }
  /// A product over `dims`; without any, a pointwise one.
  ValueId product(ValueId a, ValueId b, const std::vector<Dim>& dims);

  void binary();
  void extremum();
  void unary();
  void contract();
  void attend();

  const Graph& graph_;
  const AdjointRequest& request_;
  const Emit& emit_;
  Op op_{};
  Attrs attrs_;
  std::vector<ValueId> operands_, results_, adjoints_;
  std::size_t for_ = 0;  // the operand that emitted ops are for
};

ValueId AdjointRule::fit(ValueId value, ValueId operand) {
  const Type& target = type(operand);
  std::vector<Symbol> extra, left, order;
  for (const Dim& dim : type(value).dims) (target.find(dim.name) ? left : extra).push_back(dim.name);
  for (const Dim& dim : target.dims) order.push_back(dim.name);
  if (!extra.empty()) value = op(Op::sum, {value}, std::move(extra));
  if (left != order) value = op(Op::permute, {value}, std::move(order));
  return value;
}

ValueId AdjointRule::product(ValueId a, ValueId b, const std::vector<Dim>& dims) {
  if (dims.empty()) return op(Op::mul, {a, b});
  std::vector<Symbol> names;
  for (const Dim& dim : dims) names.push_back(dim.name);
  return op(Op::contract, {a, b}, std::move(names));
}

void AdjointRule::binary() {
  for (for_ = 0; for_ < 2; ++for_) {
    if (!wanted(for_)) continue;
    switch (op_) {
      case Op::add: give(for_, dy()); break;
      case Op::sub: give(for_, for_ == 0 ? dy() : op(Op::neg, {dy()})); break;
      case Op::mul: give(for_, op(Op::mul, {dy(), x(1 - for_)})); break;
      case Op::div:
        // d(a / b) / db = -y / b
        give(for_, for_ == 0 ? op(Op::div, {dy(), x(1)}) : op(Op::neg, {op(Op::div, {op(Op::mul, {dy(), y()}), x(1)})}));
        break;
      default: break;
    }
  }
}

void AdjointRule::extremum() {
  // maximum takes a where a >= b; minimum takes a where b >= a.
  const ValueId upper = op_ == Op::maximum ? x(0) : x(1);
  const ValueId lower = op_ == Op::maximum ? x(1) : x(0);
  for (for_ = 0; for_ < 2; ++for_) {
    if (wanted(for_)) give(for_, op(for_ == 0 ? Op::select_ge : Op::select_lt, {upper, lower, dy()}));
  }
}

void AdjointRule::unary() {
  for_ = 0;
  if (!wanted(0)) return;
  switch (op_) {
    case Op::neg: return give(0, op(Op::neg, {dy()}));
    case Op::scale: return give(0, op(Op::scale, {dy()}, attrs_.scalar));
    case Op::offset: return give(0, dy());
    case Op::exp: return give(0, op(Op::mul, {dy(), y()}));
    case Op::log: return give(0, op(Op::div, {dy(), x()}));
    case Op::sqrt: return give(0, op(Op::div, {op(Op::scale, {dy()}, 0.5), y()}));
    case Op::rsqrt: return give(0, op(Op::mul, {op(Op::scale, {dy()}, -0.5), op(Op::mul, {y(), op(Op::square, {y()})})}));
    case Op::square: return give(0, op(Op::mul, {op(Op::scale, {dy()}, 2.0), x()}));
    case Op::tanh: return give(0, op(Op::mul, {dy(), op(Op::offset, {op(Op::neg, {op(Op::square, {y()})})}, 1.0)}));
    case Op::sigmoid: return give(0, op(Op::mul, {dy(), op(Op::mul, {y(), op(Op::offset, {op(Op::neg, {y()})}, 1.0)})}));
    case Op::softplus: return give(0, op(Op::mul, {dy(), op(Op::sigmoid, {x()})}));
    case Op::relu: return give(0, op(Op::relu_grad, {x(), dy()}));
    case Op::gelu: return give(0, op(Op::gelu_grad, {x(), dy()}));
    case Op::silu: return give(0, op(Op::silu_grad, {x(), dy()}));
    case Op::dropout: return give(0, op(Op::dropout, {dy()}, attrs_));
    case Op::cast: {
      Attrs back;
      back.dtype = type(x()).dtype;
      return give(0, op(Op::cast, {dy()}, std::move(back)));
    }
    case Op::sum: {
      Attrs spread;
      spread.shape = type(x());
      return give(0, attrs_.dims.empty() ? dy() : op(Op::broadcast, {dy()}, std::move(spread)));
    }
    case Op::max: return give(0, op(Op::max_grad, {x(), y(), dy()}, attrs_));
    case Op::softmax: return give(0, op(Op::softmax_grad, {y(), dy()}, attrs_));
    case Op::log_softmax: return give(0, op(Op::log_softmax_grad, {y(), dy()}, attrs_));
    case Op::rms_norm: return give(0, op(Op::rms_norm_grad, {x(), dy()}, attrs_));
    case Op::layer_norm: return give(0, op(Op::layer_norm_grad, {x(), dy()}, attrs_));
    case Op::rename: {
      Attrs back;
      back.dims = attrs_.dims2;
      back.dims2 = attrs_.dims;
      return give(0, op(Op::rename, {dy()}, std::move(back)));
    }
    case Op::broadcast: case Op::permute: return give(0, dy());
    case Op::cross_entropy: return give(0, op(Op::cross_entropy_grad, {x(0), x(1), dy()}, attrs_));
    case Op::lookup: {
      Attrs table;
      table.shape = type(x(0));
      return give(0, op(Op::lookup_grad, {x(1), dy()}, std::move(table)));
    }
    default: return;
  }
}

/// y[B, M, N] = a[B, M, K] b[B, K, N]. Each adjoint is a product again, its operands in the order that makes the memory order of the result that of the operand.
void AdjointRule::contract() {
  const GemmForm form = gemm_form(type(x(0)), type(x(1)), attrs_.dims);
  for_ = 0;
  if (wanted(0)) give(0, form.a_summed_last ? product(dy(), x(1), form.rest_b) : product(x(1), dy(), form.rest_b));
  for_ = 1;
  if (wanted(1)) give(1, form.b_summed_last ? product(dy(), x(0), form.rest_a) : product(x(0), dy(), form.rest_a));
}

void AdjointRule::attend() {
  // One op computes all three adjoints; it is for the first one that is wanted, and for an operand that is no parameter if there is one.
  const ValueId first = emit_(Op::attend_grad, {x(0), x(1), x(2), y(), results_[1], dy()}, attrs_, 0, 0);
  for (std::size_t i = 0; i < 3; ++i) {
    if (wanted(i)) adjoints_[i] = ValueId(first.value() + static_cast<std::uint32_t>(i));
  }
}

std::vector<ValueId> AdjointRule::run() {
  switch (op_) {
    case Op::add: case Op::sub: case Op::mul: case Op::div: binary(); break;
    case Op::maximum: case Op::minimum: extremum(); break;
    case Op::select_ge: case Op::select_lt:
      for_ = 2;
      if (wanted(2)) give(2, op(op_, {x(0), x(1), dy()}));
      break;
    case Op::contract: contract(); break;
    case Op::attend: attend(); break;
    default: unary(); break;
  }
  return std::move(adjoints_);
}

}  // namespace

bool is_differentiable(Op op, std::size_t operand) {
  switch (op) {
    case Op::relu_grad: case Op::gelu_grad: case Op::silu_grad: case Op::max_grad: case Op::softmax_grad: case Op::log_softmax_grad:
    case Op::rms_norm_grad: case Op::layer_norm_grad: case Op::cross_entropy_grad: case Op::lookup_grad: case Op::attend_grad:
    case Op::fill: return false;
    case Op::select_ge: case Op::select_lt: return operand == 2;
    case Op::cross_entropy: case Op::lookup: return operand == 0;
    default: return operand < info(op).operands;
  }
}

std::vector<ValueId> adjoints(const AdjointRequest& request, const Emit& emit) { return AdjointRule(request, emit).run(); }

}  // namespace piper::tensor
