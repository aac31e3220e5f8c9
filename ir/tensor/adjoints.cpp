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

  /// Emits one op for the adjoint of operand `for_`.
  ValueId op(Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    return emit_(op, std::move(operands), std::move(attrs), for_, 0);
  }
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

  /// The value cast to that type.
  ValueId as(DType dtype, ValueId value) {
    if (type(value).dtype == dtype) return value;
    Attrs to;
    to.dtype = dtype;
    return op(Op::cast, {value}, std::move(to));
  }

  /// Sums over the dimensions that the operand lacks (it was broadcast) and restores its memory
  /// order.
  ValueId fit(ValueId value, ValueId operand);
  void give(std::size_t i, ValueId value) { adjoints_[i] = fit(value, x(i)); }
  /// A product over `dims`; pointwise if `dims` is empty.
  ValueId product(ValueId a, ValueId b, const std::vector<Dim>& dims);

  /// The adjoint of each wanted operand, emitted for that operand.
  template <typename First>
  void one(First first) {
    only(0, first);
  }
  template <typename First, typename Second>
  void two(First first, Second second) {
    only(0, first);
    only(1, second);
  }
  template <typename Make>
  void only(std::size_t i, Make make) {
    for_ = i;
    if (wanted(i)) give(i, make());
  }

  /// Along the dimension of `slice`, `pad` and `concat`.
  std::int64_t extent_of(ValueId value) const {
    return type(value).dims[*type(value).find(attrs_.dims[0])].extent;
  }
  /// The attributes of the slice that takes `value` out of a larger value at `from`.
  Attrs part_of(ValueId value, std::int64_t from) const {
    Attrs part;
    part.dims = attrs_.dims;
    part.from = from;
    part.extent = extent_of(value);
    return part;
  }

  void extremum();
  void contract();
  void attend();
  void concat();

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
  for (const Dim& dim : type(value).dims)
    (target.find(dim.name) ? left : extra).push_back(dim.name);
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

void AdjointRule::extremum() {
  // maximum takes a where a >= b; minimum takes a where b >= a.
  const ValueId upper = op_ == Op::maximum ? x(0) : x(1);
  const ValueId lower = op_ == Op::maximum ? x(1) : x(0);
  two([&] { return op(Op::select_ge, {upper, lower, dy()}); },
      [&] { return op(Op::select_lt, {upper, lower, dy()}); });
}

/// y[B, M, N] = a[B, M, K] b[B, K, N]. Each adjoint is a product again, its operands in the order
/// that makes the memory order of the result that of the operand.
void AdjointRule::contract() {
  const GemmForm form = gemm_form(type(x(0)), type(x(1)), attrs_.dims);
  const auto change = [&] { return as(type(x(0)).dtype, dy()); };
  two(
      [&] {
        return form.a_summed_last ? product(change(), x(1), form.rest_b)
                                  : product(x(1), change(), form.rest_b);
      },
      [&] {
        return form.b_summed_last ? product(change(), x(0), form.rest_a)
                                  : product(x(0), change(), form.rest_a);
      });
}

void AdjointRule::attend() {
  // One op computes all three adjoints. It is tagged by a wanted operand that is no parameter if
  // there is one, else by the first wanted one.
  const ValueId first =
      emit_(Op::attend_grad, {x(0), x(1), x(2), y(), results_[1], dy()}, attrs_, 0, 0);
  for (std::size_t i = 0; i < 3; ++i) {
    if (wanted(i)) adjoints_[i] = ValueId(first.value() + static_cast<std::uint32_t>(i));
  }
}

/// Each operand is a part of the result.
void AdjointRule::concat() {
  std::int64_t from = 0;
  for (for_ = 0; for_ < 2; ++for_) {
    const Attrs part = part_of(x(for_), from);
    from += part.extent;
    if (wanted(for_)) give(for_, op(Op::slice, {dy()}, part));
  }
}

std::vector<ValueId> AdjointRule::run() {
  switch (op_) {
    case Op::add: two([&] { return dy(); }, [&] { return dy(); }); break;
    case Op::sub: two([&] { return dy(); }, [&] { return op(Op::neg, {dy()}); }); break;
    case Op::mul:
      two([&] { return op(Op::mul, {dy(), x(1)}); }, [&] { return op(Op::mul, {dy(), x(0)}); });
      break;
    case Op::div:  // d(a / b) / db = -y / b
      two([&] { return op(Op::div, {dy(), x(1)}); },
          [&] { return op(Op::neg, {op(Op::div, {op(Op::mul, {dy(), y()}), x(1)})}); });
      break;
    case Op::maximum:
    case Op::minimum: extremum(); break;
    case Op::neg: one([&] { return op(Op::neg, {dy()}); }); break;
    case Op::scale: one([&] { return op(Op::scale, {dy()}, attrs_.scalar); }); break;
    case Op::offset: one([&] { return dy(); }); break;
    case Op::exp: one([&] { return op(Op::mul, {dy(), y()}); }); break;
    case Op::log: one([&] { return op(Op::div, {dy(), x()}); }); break;
    case Op::sqrt: one([&] { return op(Op::div, {op(Op::scale, {dy()}, 0.5), y()}); }); break;
    case Op::rsqrt:
      one([&] {
        return op(Op::mul,
                  {op(Op::scale, {dy()}, -0.5), op(Op::mul, {y(), op(Op::square, {y()})})});
      });
      break;
    case Op::square: one([&] { return op(Op::mul, {op(Op::scale, {dy()}, 2.0), x()}); }); break;
    case Op::sin: one([&] { return op(Op::mul, {dy(), op(Op::cos, {x()})}); }); break;
    case Op::cos:
      one([&] { return op(Op::neg, {op(Op::mul, {dy(), op(Op::sin, {x()})})}); });
      break;
    case Op::tanh:
      one([&] {
        return op(Op::mul, {dy(), op(Op::offset, {op(Op::neg, {op(Op::square, {y()})})}, 1.0)});
      });
      break;
    case Op::sigmoid:
      one([&] {
        return op(Op::mul, {dy(), op(Op::mul, {y(), op(Op::offset, {op(Op::neg, {y()})}, 1.0)})});
      });
      break;
    case Op::softplus: one([&] { return op(Op::mul, {dy(), op(Op::sigmoid, {x()})}); }); break;
    case Op::relu: one([&] { return op(Op::relu_grad, {x(), dy()}); }); break;
    case Op::gelu: one([&] { return op(Op::gelu_grad, {x(), dy()}); }); break;
    case Op::silu: one([&] { return op(Op::silu_grad, {x(), dy()}); }); break;
    case Op::select_ge:
    case Op::select_lt: only(2, [&] { return op(op_, {x(0), x(1), dy()}); }); break;
    case Op::dropout: one([&] { return op(Op::dropout, {dy()}, attrs_); }); break;
    // The adjoint of the rounded value may stand for that of the value before rounding: products
    // take it as it is.
    case Op::cast:
      one([&] {
        return wide(type(y()).dtype) == type(x()).dtype ? dy() : as(type(x()).dtype, dy());
      });
      break;
    case Op::sum:
      one([&] {
        Attrs spread;
        spread.shape = type(x());
        return attrs_.dims.empty()
                   ? dy()
                   : op(Op::broadcast, {as(spread.shape.dtype, dy())}, std::move(spread));
      });
      break;
    case Op::max: one([&] { return op(Op::max_grad, {x(), y(), dy()}, attrs_); }); break;
    case Op::softmax: one([&] { return op(Op::softmax_grad, {y(), dy()}, attrs_); }); break;
    case Op::log_softmax: one([&] { return op(Op::log_softmax_grad, {y(), dy()}, attrs_); }); break;
    case Op::rms_norm: one([&] { return op(Op::rms_norm_grad, {x(), dy()}, attrs_); }); break;
    case Op::layer_norm: one([&] { return op(Op::layer_norm_grad, {x(), dy()}, attrs_); }); break;
    case Op::cross_entropy:
      one([&] { return op(Op::cross_entropy_grad, {x(0), x(1), dy()}, attrs_); });
      break;
    case Op::lookup:
      one([&] {
        Attrs table;
        table.shape = gradient_type(type(x(0)));
        return op(Op::lookup_grad, {x(1), dy()}, std::move(table));
      });
      break;
    case Op::slice:
      one([&] {
        Attrs whole = attrs_;
        whole.extent = extent_of(x());
        return op(Op::pad, {dy()}, std::move(whole));
      });
      break;
    case Op::pad: one([&] { return op(Op::slice, {dy()}, part_of(x(), attrs_.from)); }); break;
    case Op::shift:
      one([&] {
        Attrs back = attrs_;
        back.from = -attrs_.from;
        return op(Op::shift, {dy()}, std::move(back));
      });
      break;
    case Op::concat: concat(); break;
    // A rotation is undone by the opposite angle, whose cosine is the same.
    case Op::rotary:
      one([&] { return op(Op::rotary, {dy(), x(1), op(Op::neg, {x(2)})}, attrs_); });
      break;
    case Op::rename:
      one([&] {
        Attrs back;
        back.dims = attrs_.dims2;
        back.dims2 = attrs_.dims;
        return op(Op::rename, {dy()}, std::move(back));
      });
      break;
    case Op::broadcast:
    case Op::permute: one([&] { return dy(); }); break;
    case Op::contract: contract(); break;
    case Op::attend: attend(); break;
    // None of these has an operand that is differentiable.
    case Op::fill:
    case Op::iota:
    case Op::piecewise:
    case Op::relu_grad:
    case Op::gelu_grad:
    case Op::silu_grad:
    case Op::max_grad:
    case Op::softmax_grad:
    case Op::log_softmax_grad:
    case Op::rms_norm_grad:
    case Op::layer_norm_grad:
    case Op::cross_entropy_grad:
    case Op::lookup_grad:
    case Op::contract_add:
    case Op::attend_grad: break;
  }
  return std::move(adjoints_);
}

}  // namespace

bool is_differentiable(Op op, std::size_t operand) {
  switch (op) {
      // clang-format off
    case Op::relu_grad: case Op::gelu_grad: case Op::silu_grad: case Op::max_grad:
    case Op::softmax_grad: case Op::log_softmax_grad: case Op::rms_norm_grad:
    case Op::layer_norm_grad: case Op::cross_entropy_grad: case Op::lookup_grad:
    case Op::attend_grad: case Op::contract_add: case Op::fill: case Op::iota:
    case Op::piecewise: return false;
    case Op::select_ge: case Op::select_lt: return operand == 2;
    case Op::cross_entropy: case Op::lookup: case Op::rotary: return operand == 0;
    case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::maximum: case Op::minimum:
    case Op::neg: case Op::scale: case Op::offset: case Op::exp: case Op::log: case Op::sqrt:
    case Op::rsqrt: case Op::square: case Op::sin: case Op::cos: case Op::tanh: case Op::sigmoid:
    case Op::softplus: case Op::relu: case Op::gelu: case Op::silu: case Op::dropout: case Op::cast:
    case Op::sum: case Op::max: case Op::softmax: case Op::log_softmax: case Op::rms_norm:
    case Op::layer_norm: case Op::slice: case Op::pad: case Op::shift: case Op::concat:
    case Op::rename: case Op::broadcast: case Op::permute: case Op::contract: case Op::attend:
      return true;
      // clang-format on
  }
  return false;
}

std::vector<ValueId> adjoints(const AdjointRequest& request, const Emit& emit) {
  return AdjointRule(request, emit).run();
}

}  // namespace piper::tensor
