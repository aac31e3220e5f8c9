#include "backend/kernel/update_body.h"

#include <llvm/Support/ErrorHandling.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace piper::backend {

using directive::Optimizer;
using tensor::DType;
using tensor::Op;
using tensor::ValueId;

namespace {

/// Ports and ops of one body. The graphs are ours: that an op does not fit is a bug here, which `Graph::add` asserts.
class BodyWriter {
 public:
  BodyWriter(Context& context, std::string_view name) : body{context.symbol(name), tensor::Graph(context), {}, {}}, prefix_(name) {}

  ValueId input(std::string_view name, DType dtype, std::int64_t elements = 0) {
    tensor::Type type{dtype, {}};
    if (elements > 0) type.dims.push_back({context().symbol("element"), elements, false});
    dag::BodyPort port;
    port.value = body.graph.add_leaf(std::move(type), context().symbol(name));
    body.inputs.push_back(port);
    return port.value;
  }
  void output(ValueId value) {
    dag::BodyPort port;
    port.value = value;
    body.outputs.push_back(port);
  }

  // Results without a name are called after their op; `updated.moment1` is `updated_moment1` in a body and `moment1` in its loops.
  ValueId add(ValueId a, ValueId b, std::string_view name = {}) { return op(Op::add, {a, b}, name); }
  ValueId sub(ValueId a, ValueId b, std::string_view name = {}) { return op(Op::sub, {a, b}, name); }
  ValueId mul(ValueId a, ValueId b, std::string_view name = {}) { return op(Op::mul, {a, b}, name); }
  ValueId div(ValueId a, ValueId b, std::string_view name = {}) { return op(Op::div, {a, b}, name); }
  ValueId minimum(ValueId a, ValueId b, std::string_view name = {}) { return op(Op::minimum, {a, b}, name); }
  ValueId scale(ValueId a, double by, std::string_view name = {}) { return op(Op::scale, {a}, name, scalar(by)); }
  ValueId offset(ValueId a, double by, std::string_view name = {}) { return op(Op::offset, {a}, name, scalar(by)); }
  ValueId square(ValueId a, std::string_view name = {}) { return op(Op::square, {a}, name); }
  ValueId sqrt(ValueId a, std::string_view name = {}) { return op(Op::sqrt, {a}, name); }
  ValueId sum(ValueId a, std::string_view name = {}) {
    tensor::Attrs attrs;
    attrs.dims = {context().symbol("element")};
    return op(Op::sum, {a}, name, std::move(attrs));
  }
  ValueId cast(ValueId a, DType dtype, std::string_view name = {}) {
    if (body.graph.type(a).dtype == dtype) return a;
    tensor::Attrs attrs;
    attrs.dtype = dtype;
    return op(Op::cast, {a}, name, std::move(attrs));
  }
  ValueId number(double value, std::string_view name = {}) {
    tensor::Attrs attrs = scalar(value);
    attrs.shape = tensor::Type{DType::f64, {}};
    return op(Op::fill, {}, name, std::move(attrs));
  }

  dag::Body body;

 private:
  Context& context() { return body.graph.context(); }
  static tensor::Attrs scalar(double value) {
    tensor::Attrs attrs;
    attrs.scalar = value;
    return attrs;
  }
  ValueId op(Op op, std::initializer_list<ValueId> operands, std::string_view name, tensor::Attrs attrs = tensor::Attrs()) {
    const std::string path = name.empty() ? prefix_ + "." + std::string(tensor::info(op).name) : std::string(name);
    const tensor::NodeId node = body.graph.add(op, {operands.begin(), operands.size()}, std::move(attrs), Pass::F, {}, {}, {}, context().symbol(path));
    return body.graph.result(body.graph.node(node));
  }

  std::string prefix_;
};

/// What every update begins with.
struct Operands {
  ValueId parameter, rate, clipped;
};

UpdateBody sgd_body(BodyWriter& w, const Optimizer& optimizer, DType dtype, std::int64_t elements, Operands in) {
  if (optimizer.weight_decay != 0) in.clipped = w.add(in.clipped, w.scale(in.parameter, optimizer.weight_decay), "decayed");
  const ValueId step = w.cast(in.rate, dtype, "step");
  if (optimizer.momentum == 0) {
    w.output(w.sub(in.parameter, w.mul(in.clipped, step), "updated.parameter"));
    return {std::move(w.body), {0}};
  }
  const ValueId momentum = w.add(w.scale(w.input("momentum", dtype, elements), optimizer.momentum), in.clipped, "updated.momentum");
  w.output(w.sub(in.parameter, w.mul(momentum, step), "updated.parameter"));
  w.output(momentum);
  return {std::move(w.body), {0, 4}};
}

UpdateBody adamw_body(BodyWriter& w, const Optimizer& optimizer, DType dtype, std::int64_t elements, const Operands& in) {
  const ValueId moment1 = w.input("moment1", dtype, elements), moment2 = w.input("moment2", dtype, elements);
  const ValueId bias1 = w.input("bias1", DType::f64), bias2 = w.input("bias2", DType::f64);
  const ValueId first = w.add(w.scale(moment1, optimizer.beta1), w.scale(in.clipped, 1 - optimizer.beta1), "updated.moment1");
  const ValueId second = w.add(w.scale(moment2, optimizer.beta2), w.scale(w.square(in.clipped), 1 - optimizer.beta2), "updated.moment2");
  const ValueId step = w.cast(w.div(in.rate, bias1), dtype, "step");
  const ValueId spread = w.cast(w.sqrt(bias2), dtype, "root_bias2");
  const ValueId denominator = w.offset(w.div(w.sqrt(second), spread), optimizer.eps, "denominator");
  ValueId decayed = in.parameter;
  if (optimizer.weight_decay != 0) decayed = w.mul(in.parameter, w.cast(w.offset(w.scale(in.rate, -optimizer.weight_decay), 1), dtype), "decayed");
  w.output(w.sub(decayed, w.div(w.mul(first, step), denominator), "updated.parameter"));
  w.output(first);
  w.output(second);
  return {std::move(w.body), {0, 4, 5}};
}

}  // namespace

UpdateBody update_body(Context& context, const Optimizer& optimizer, DType dtype, std::int64_t elements) {
  BodyWriter w(context, "update");
  const ValueId parameter = w.input("parameter", dtype, elements);
  const ValueId gradient = w.input("gradient", dtype, elements);
  // Scalars are combined in f64 and rounded once.
  const ValueId rate = w.input("learning_rate", DType::f64);
  const ValueId factor = w.cast(w.input("factor", DType::f64), dtype);
  const Operands in{parameter, rate, w.mul(gradient, factor, "clipped")};
  switch (optimizer.kind) {
    case Optimizer::Kind::sgd: return sgd_body(w, optimizer, dtype, elements, in);
    case Optimizer::Kind::adamw: return adamw_body(w, optimizer, dtype, elements, in);
  }
  llvm_unreachable("no optimizer");
}

dag::Body sum_squares_body(Context& context, DType dtype, std::span<const std::int64_t> elements) {
  BodyWriter w(context, "sum_squares");
  std::vector<ValueId> gradients;
  for (std::size_t i = 0; i < elements.size(); ++i) gradients.push_back(w.input("gradient_" + std::to_string(i), dtype, elements[i]));
  for (std::size_t i = 0; i < elements.size(); ++i) w.output(w.sum(w.square(w.cast(gradients[i], DType::f64)), "square_" + std::to_string(i)));
  return std::move(w.body);
}

dag::Body norm_body(Context& context, std::size_t count, std::optional<double> clip) {
  BodyWriter w(context, "norm");
  std::vector<ValueId> squares;
  for (std::size_t i = 0; i < count; ++i) squares.push_back(w.input("square_" + std::to_string(i), DType::f64));
  ValueId total = count == 0 ? w.number(0) : squares[0];
  for (std::size_t i = 1; i < count; ++i) total = w.add(total, squares[i]);
  const ValueId norm = w.sqrt(total, "norm");
  const ValueId factor = clip ? w.minimum(w.number(1), w.div(w.number(*clip), w.offset(norm, 1e-6)), "factor") : w.number(1, "factor");
  w.output(norm);
  w.output(factor);
  return std::move(w.body);
}

}  // namespace piper::backend
