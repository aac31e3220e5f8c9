// Operations along the columns of a row: maxima, softmax, norms, cross-entropy, and their adjoints.
// One small function each.

#include "backend/kernel/lowering.h"
#include "llvm/Support/ErrorHandling.h"

namespace piper::backend {

using tensor::DType;
using tensor::Node;
using tensor::Op;
using tensor::ValueId;

class Along {
 public:
  Along(Lowering& lowering, const Item& item)
      : lowering_(lowering),
        item_(item),
        node_(lowering.graph_.node(item.node)),
        operands_(lowering.graph_.operands(node_)),
        label_(lowering.name(item.result)) {
    for (const Axis axis : item.columns) extent_ *= lowering.axes_.extent(axis);
    inverse_ = 1.0 / static_cast<double>(extent_);
    x_ = operand(0);
  }

  Lowering::Id result() {
    switch (node_.op) {
      case Op::max: return op(Code::row_max, label_, x_);
      case Op::max_grad: return max_grad();
      case Op::softmax: return softmax(label_);
      case Op::softmax_grad: return softmax_grad();
      case Op::log_softmax: return op(Code::sub, label_, x_, log_sum_exp());
      case Op::log_softmax_grad: return log_softmax_grad();
      case Op::rms_norm: return op(Code::mul, label_, x_, inverse_rms(x_));
      case Op::rms_norm_grad: return rms_norm_grad();
      case Op::layer_norm: return layer_norm();
      case Op::layer_norm_grad: return layer_norm_grad();
      case Op::cross_entropy: return cross_entropy();
      case Op::cross_entropy_grad: return cross_entropy_grad();
      default: llvm_unreachable("no operation along columns");
    }
  }

 private:
  using Id = Lowering::Id;

  // ---- statements
  Id operand(std::size_t i) { return lowering_.value(operands_[i]); }
  Id number(Id like, double value) { return lowering_.number(like, value); }
  Id op(Code code, std::string name, Id a, Id b = -1) {
    return lowering_.op(code, std::move(name), a, b);
  }
  Id row_sum(std::string name, Id a) { return op(Code::row_sum, std::move(name), a); }
  Id column() {
    Statement s;
    s.code = Code::column;
    s.dtype = DType::i64;
    s.name = "column";
    return lowering_.add(std::move(s));
  }
  /// `value` in column `index`, else 0.
  Id select(std::string name, Id index, Id value) {
    Statement s;
    s.code = Code::select_eq;
    s.dtype = lowering_.dtype_of(value);
    s.operands[0] = column();
    s.operands[1] = index;
    s.operands[2] = value;
    s.name = std::move(name);
    return lowering_.add(std::move(s));
  }

  // ---- parts
  Id shifted_exp() {
    return op(Code::exp, "e", op(Code::sub, "shifted", x_, op(Code::row_max, "largest", x_)));
  }
  Id log_sum_exp() {
    return op(Code::add, "log_sum_exp", op(Code::row_max, "largest", x_),
              op(Code::log, "log_sum", row_sum("sum_exp", shifted_exp())));
  }
  Id softmax(const std::string& name) {
    const Id e = shifted_exp();
    return op(Code::mul, name, e, op(Code::div, "scale", number(e, 1), row_sum("sum_exp", e)));
  }
  Id mean(std::string name, Id sum) {
    return op(Code::mul, std::move(name), sum, number(sum, inverse_));
  }
  Id centered(Id a) { return op(Code::sub, "centered", a, mean("mean", row_sum("sum", a))); }
  /// 1 / sqrt(mean square + epsilon)
  Id inverse_rms(Id a) {
    const Id square = mean("mean_square", row_sum("sum_square", op(Code::square, "square", a)));
    return op(Code::rsqrt, "inverse_rms",
              op(Code::add, "variance", square, number(a, node_.attrs.scalar)));
  }

  // ---- results
  Id max_grad() {
    Statement s;
    s.code = Code::row_first;
    s.dtype = DType::i64;
    s.operands[0] = x_;
    s.operands[1] = operand(1);
    s.name = "first";
    const Id first = lowering_.add(std::move(s));
    column();  // comes before the selected value
    return select(label_, first, operand(2));
  }

  Id softmax_grad() {
    const Id dy = operand(1);
    const Id dot = row_sum("dot", op(Code::mul, "product", x_, dy));
    return op(Code::mul, label_, x_, op(Code::sub, "difference", dy, dot));
  }

  Id log_softmax_grad() {
    const Id dy = operand(1);
    return op(Code::sub, label_, dy,
              op(Code::mul, "share", op(Code::exp, "probability", x_), row_sum("sum_dy", dy)));
  }

  Id rms_norm_grad() {
    const Id dy = operand(1);
    const Id r = inverse_rms(x_);
    const Id dot = row_sum("dot", op(Code::mul, "product", x_, dy));
    const Id factor = op(Code::mul, "factor", mean("mean_dot", dot),
                         op(Code::mul, "cube", op(Code::square, "square", r), r));
    return op(Code::sub, label_, op(Code::mul, "scaled", dy, r),
              op(Code::mul, "along", x_, factor));
  }

  Id layer_norm() {
    const Id c = centered(x_);
    return op(Code::mul, label_, c, inverse_rms(c));
  }

  Id layer_norm_grad() {
    const Id dy = operand(1);
    const Id c = centered(x_);
    const Id r = inverse_rms(c);
    const Id mean_dy = mean("mean_dy", row_sum("sum_dy", dy));
    const Id dot = row_sum("dot", op(Code::mul, "product", c, dy));
    const Id factor = op(Code::mul, "factor", mean("mean_dot", dot), op(Code::square, "square", r));
    const Id rest = op(Code::sub, "rest", op(Code::sub, "centered_dy", dy, mean_dy),
                       op(Code::mul, "along", c, factor));
    return op(Code::mul, label_, rest, r);
  }

  Id cross_entropy() {
    const Id at = target();
    const Id norm = log_sum_exp();
    return masked(at, op(Code::sub, label_, norm, picked(at)));
  }

  Id cross_entropy_grad() {
    const Id at = target();
    const Id dy = operand(2);
    const Id probability = softmax("probability");
    const Id one = number(x_, 1);
    const Id one_hot = select("one_hot", at, one);
    return masked(at, op(Code::mul, label_, op(Code::sub, "difference", probability, one_hot), dy));
  }

  // ---- cross-entropy
  /// The class of every row, which is checked.
  Id target() {
    lowering_.kernel_.checks.push_back({lowering_.buffers_.of(lowering_.axes_.memory(operands_[1])),
                                        extent_, lowering_.place(node_), true, node_.attrs.ignore});
    return operand(1);
  }

  /// Whether the register is a plain load, so that the element of another column is at a fixed
  /// distance in memory. A guard or an index applies only to the column of the loop.
  static bool lies_in_its_row(const Statement& s) {
    return s.code == Code::load && !s.row && s.access.guard.strides.empty() && s.operands[0] < 0 &&
           s.access.index < 0;
  }

  /// The element of `x` at the target: read from memory if one loop walks a row there, else summed
  /// out of the row.
  Id picked(Id target) {
    const Statement& s = lowering_.kernel_.statements[static_cast<std::size_t>(x_)];
    const bool one_axis = !node_.attrs.ignore && item_.columns.size() == 1 && lies_in_its_row(s) &&
                          lowering_.kernel_.columns.size() == 1;
    if (!one_axis) return row_sum("picked", select("at_target", target, x_));
    Statement pick = s;
    pick.access.index = target;
    pick.access.index_stride = s.access.strides.back();
    pick.access.strides.back() = 0;
    pick.name = "picked";
    return lowering_.add(std::move(pick));
  }

  /// 0 if the target is ignored.
  Id masked(Id target, Id a) {
    if (!node_.attrs.ignore) return a;
    Statement s;
    s.code = Code::select_other;
    s.dtype = lowering_.dtype_of(a);
    s.operands[0] = target;
    s.operands[1] = a;
    s.ignore = *node_.attrs.ignore;
    s.name = label_;
    return lowering_.add(std::move(s));
  }

  Lowering& lowering_;
  const Item& item_;
  const Node& node_;
  std::span<const ValueId> operands_;
  std::string label_;
  std::int64_t extent_ = 1;  // of the columns
  double inverse_ = 1;
  Id x_ = -1;
};

void Lowering::along(const Item& item) { define(item.result, Along(*this, item).result()); }

}  // namespace piper::backend
