#include "backend/kernel/update_body.h"

#include <cassert>
#include <string>

#include "ir/tensor/builder.h"

namespace piper::backend {

using directive::Optimizer;
using tensor::Built;
using tensor::DType;
using tensor::Op;
using tensor::ValueId;

namespace {

/// Ports and ops of one body. The graphs are ours: an op that does not fit is a bug here.
class BodyWriter {
 public:
  BodyWriter(Context& context, std::string_view name) : body{context.symbol(name), tensor::Graph(context), {}, {}}, build_(body.graph) {
    build_.at(RegionId(), LocId(), std::string(name));
  }

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

  ValueId add(ValueId a, ValueId b) { return check(build_.binary(Op::add, a, b)); }
  ValueId sub(ValueId a, ValueId b) { return check(build_.binary(Op::sub, a, b)); }
  ValueId mul(ValueId a, ValueId b) { return check(build_.binary(Op::mul, a, b)); }
  ValueId div(ValueId a, ValueId b) { return check(build_.binary(Op::div, a, b)); }
  ValueId minimum(ValueId a, ValueId b) { return check(build_.binary(Op::minimum, a, b)); }
  ValueId scale(ValueId a, double by) { return check(build_.scale(a, by)); }
  ValueId offset(ValueId a, double by) { return check(build_.offset(a, by)); }
  ValueId square(ValueId a) { return check(build_.unary(Op::square, a)); }
  ValueId sqrt(ValueId a) { return check(build_.unary(Op::sqrt, a)); }
  ValueId sum(ValueId a) { return check(build_.sum(a, {context().symbol("element")})); }
  ValueId cast(ValueId a, DType dtype) { return body.graph.type(a).dtype == dtype ? a : check(build_.cast(a, dtype)); }
  ValueId number(double value) {
    tensor::Attrs attrs;
    attrs.scalar = value;
    attrs.shape = tensor::Type{DType::f64, {}};
    return check(build_.op(Op::fill, {}, std::move(attrs)));
  }

  dag::Body body;

 private:
  Context& context() { return body.graph.context(); }
  ValueId check(const Built& built) {
    assert(built && "the optimizer's graph does not fit together");
    return built.value;
  }

  tensor::Builder build_;
};

}  // namespace

UpdateBody update_body(Context& context, const Optimizer& optimizer, DType dtype, std::int64_t elements) {
  BodyWriter w(context, "update");
  const ValueId parameter = w.input("parameter", dtype, elements);
  const ValueId gradient = w.input("gradient", dtype, elements);
  // Scalars are combined in f64 and rounded once.
  const ValueId rate = w.input("learning_rate", DType::f64);
  const ValueId factor = w.cast(w.input("factor", DType::f64), dtype);
  ValueId clipped = w.mul(gradient, factor);

  if (optimizer.kind == Optimizer::Kind::sgd) {
    if (optimizer.weight_decay != 0) clipped = w.add(clipped, w.scale(parameter, optimizer.weight_decay));
    const ValueId step = w.cast(rate, dtype);
    if (optimizer.momentum == 0) {
      w.output(w.sub(parameter, w.mul(clipped, step)));
      return {std::move(w.body), {0}};
    }
    const ValueId momentum = w.add(w.scale(w.input("momentum", dtype, elements), optimizer.momentum), clipped);
    w.output(w.sub(parameter, w.mul(momentum, step)));
    w.output(momentum);
    return {std::move(w.body), {0, 4}};
  }

  const ValueId moment1 = w.input("moment1", dtype, elements), moment2 = w.input("moment2", dtype, elements);
  const ValueId bias1 = w.input("bias1", DType::f64), bias2 = w.input("bias2", DType::f64);
  const ValueId first = w.add(w.scale(moment1, optimizer.beta1), w.scale(clipped, 1 - optimizer.beta1));
  const ValueId second = w.add(w.scale(moment2, optimizer.beta2), w.scale(w.square(clipped), 1 - optimizer.beta2));
  const ValueId step = w.cast(w.div(rate, bias1), dtype);
  const ValueId spread = w.cast(w.sqrt(bias2), dtype);
  const ValueId denominator = w.offset(w.div(w.sqrt(second), spread), optimizer.eps);
  ValueId decayed = parameter;
  if (optimizer.weight_decay != 0) decayed = w.mul(parameter, w.cast(w.offset(w.scale(rate, -optimizer.weight_decay), 1), dtype));
  w.output(w.sub(decayed, w.div(w.mul(first, step), denominator)));
  w.output(first);
  w.output(second);
  return {std::move(w.body), {0, 4, 5}};
}

dag::Body sum_squares_body(Context& context, DType dtype, std::span<const std::int64_t> elements) {
  BodyWriter w(context, "sum_squares");
  std::vector<ValueId> gradients;
  for (std::size_t i = 0; i < elements.size(); ++i) gradients.push_back(w.input("gradient_" + std::to_string(i), dtype, elements[i]));
  for (ValueId gradient : gradients) w.output(w.sum(w.square(w.cast(gradient, DType::f64))));
  return std::move(w.body);
}

dag::Body norm_body(Context& context, std::size_t count, std::optional<double> clip) {
  BodyWriter w(context, "norm");
  std::vector<ValueId> squares;
  for (std::size_t i = 0; i < count; ++i) squares.push_back(w.input("square_" + std::to_string(i), DType::f64));
  ValueId total = count == 0 ? w.number(0) : squares[0];
  for (std::size_t i = 1; i < count; ++i) total = w.add(total, squares[i]);
  const ValueId norm = w.sqrt(total);
  const ValueId factor = clip ? w.minimum(w.number(1), w.div(w.number(*clip), w.offset(norm, 1e-6))) : w.number(1);
  w.output(norm);
  w.output(factor);
  return std::move(w.body);
}

}  // namespace piper::backend
