#include "backend/kernel/update_body.h"

#include <llvm/Support/ErrorHandling.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "ir/dag/bucket_layout.h"

namespace piper::backend {

using directive::Optimizer;
using tensor::DType;
using tensor::Op;
using tensor::ValueId;

namespace {

/// Ports and ops of one body. An op that does not fit is a bug here, which `Graph::add` asserts.
class BodyWriter {
 public:
  BodyWriter(Context& context, std::string_view name)
      : body{context.symbol(name), tensor::Graph(context), {}, {}}, prefix_(name) {}

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

  // Results without a name are named by their op; `updated.moment1` is `updated_moment1` in a body
  // and `moment1` in its loops.
  ValueId add(ValueId a, ValueId b, std::string_view name = {}) {
    return op(Op::add, {a, b}, name);
  }
  ValueId sub(ValueId a, ValueId b, std::string_view name = {}) {
    return op(Op::sub, {a, b}, name);
  }
  ValueId mul(ValueId a, ValueId b, std::string_view name = {}) {
    return op(Op::mul, {a, b}, name);
  }
  ValueId div(ValueId a, ValueId b, std::string_view name = {}) {
    return op(Op::div, {a, b}, name);
  }
  ValueId minimum(ValueId a, ValueId b, std::string_view name = {}) {
    return op(Op::minimum, {a, b}, name);
  }
  ValueId scale(ValueId a, double by, std::string_view name = {}) {
    return op(Op::scale, {a}, name, scalar(by));
  }
  ValueId offset(ValueId a, double by, std::string_view name = {}) {
    return op(Op::offset, {a}, name, scalar(by));
  }
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
  ValueId select_ge(ValueId a, ValueId b, ValueId x) { return op(Op::select_ge, {a, b, x}, {}); }
  /// A number per element.
  ValueId pieces(const tensor::Pieces& pieces, DType dtype, std::int64_t elements,
                 std::string_view name) {
    if (pieces.numbers.size() == 1) return cast(number(pieces.numbers[0]), dtype);
    tensor::Attrs attrs;
    attrs.pieces = pieces;
    attrs.shape = tensor::Type{dtype, {{context().symbol("element"), elements, false}}};
    return op(Op::piecewise, {}, name, std::move(attrs));
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
  ValueId op(Op op, std::initializer_list<ValueId> operands, std::string_view name,
             tensor::Attrs attrs = tensor::Attrs()) {
    const std::string path =
        name.empty() ? prefix_ + "." + std::string(tensor::info(op).name) : std::string(name);
    const tensor::NodeId node =
        body.graph.add(op, {operands.begin(), operands.size()}, std::move(attrs), Pass::F, {}, {},
                       {}, context().symbol(path));
    return body.graph.result(body.graph.node(node));
  }

  std::string prefix_;
};

/// The common begin and end of every optimizer's update. State comes after four other inputs.
class Update {
 public:
  Update(Context& context, const UpdateRule& rule, DType dtype, std::int64_t elements)
      : w(context, "update"),
        rule(rule),
        optimizer(rule.optimizer),
        dtype(tensor::wide(dtype)),
        elements(elements),
        narrow_(tensor::is_narrow(dtype)),
        stored_(dtype) {
    parameter = w.input("parameter", dtype, elements);
    gradient_ = w.input("gradient", this->dtype, elements);
    // Scalars are combined in f64 and rounded once.
    rate = w.input("learning_rate", DType::f64);
    clipped = w.mul(gradient_, w.cast(w.input("factor", DType::f64), this->dtype), "clipped");
  }

  /// A slot, as the last update left it.
  ValueId slot(std::string_view name) {
    in_place_.push_back(4 + static_cast<int>(in_place_.size()));
    return w.input(name, dtype, elements);
  }
  /// The moving average and the master weights, after all other slots. The update reads the master
  /// weights in place of the parameter.
  void open_common_slots() {
    if (rule.ema) average_ = slot("average");
    if (narrow_) parameter = slot("master");
  }
  /// The learning rate `step` of the elements.
  ValueId tuned(ValueId step) {
    return rule.rates ? w.mul(step, w.pieces(*rule.rates, dtype, elements, "rate"), "tuned.step")
                      : step;
  }
  /// `decay` times the factors of the elements' weight decays.
  ValueId tuned_decay(ValueId decay) {
    return rule.decays
               ? w.mul(decay, w.pieces(*rule.decays, dtype, elements, "decay"), "tuned.decay")
               : decay;
  }
  UpdateBody done(ValueId updated, std::vector<ValueId> state) {
    if (rule.ema)
      state.push_back(
          w.add(average_, w.scale(w.sub(updated, average_), 1 - *rule.ema), "updated.average"));
    w.output(narrow_ ? w.cast(updated, stored_, "rounded.parameter") : updated);
    for (const ValueId value : state) w.output(value);
    if (narrow_) w.output(updated);
    in_place_.insert(in_place_.begin(), 0);
    return {std::move(w.body), std::move(in_place_), rule.skips};
  }

  BodyWriter w;
  const UpdateRule& rule;
  const Optimizer& optimizer;
  const DType dtype;  // type of all values except the parameter
  const std::int64_t elements;
  ValueId parameter, rate, clipped;

 private:
  const bool narrow_;
  const DType stored_;
  ValueId gradient_, average_;
  std::vector<int> in_place_;
};

UpdateBody sgd_body(Update& u) {
  BodyWriter& w = u.w;
  const bool keeps = u.optimizer.momentum != 0;
  const ValueId before = keeps ? u.slot("momentum") : ValueId();
  u.open_common_slots();
  ValueId change = u.clipped;
  if (u.optimizer.weight_decay != 0)
    change =
        w.add(change, u.tuned_decay(w.scale(u.parameter, u.optimizer.weight_decay)), "decayed");
  const ValueId step = u.tuned(w.cast(u.rate, u.dtype, "step"));
  if (keeps) change = w.add(w.scale(before, u.optimizer.momentum), change, "updated.momentum");
  const ValueId updated = w.sub(u.parameter, w.mul(change, step), "updated.parameter");
  return keeps ? u.done(updated, {change}) : u.done(updated, {});
}

UpdateBody adamw_body(Update& u) {
  BodyWriter& w = u.w;
  const Optimizer& optimizer = u.optimizer;
  const ValueId moment1 = u.slot("moment1"), moment2 = u.slot("moment2");
  u.open_common_slots();
  const ValueId bias1 = w.input("bias1", DType::f64), bias2 = w.input("bias2", DType::f64);
  const ValueId first = w.add(w.scale(moment1, optimizer.beta1),
                              w.scale(u.clipped, 1 - optimizer.beta1), "updated.moment1");
  const ValueId second =
      w.add(w.scale(moment2, optimizer.beta2), w.scale(w.square(u.clipped), 1 - optimizer.beta2),
            "updated.moment2");
  const ValueId step = u.tuned(w.cast(w.div(u.rate, bias1), u.dtype, "step"));
  const ValueId spread = w.cast(w.sqrt(bias2), u.dtype, "root_bias2");
  const ValueId denominator = w.offset(w.div(w.sqrt(second), spread), optimizer.eps, "denominator");
  ValueId decayed = u.parameter;
  if (optimizer.weight_decay != 0 && (u.rule.rates || u.rule.decays)) {
    const ValueId shrinks = w.cast(w.scale(u.rate, -optimizer.weight_decay), u.dtype, "shrinks");
    decayed = w.mul(u.parameter, w.offset(u.tuned_decay(u.tuned(shrinks)), 1), "decayed");
  } else if (optimizer.weight_decay != 0) {
    decayed =
        w.mul(u.parameter, w.cast(w.offset(w.scale(u.rate, -optimizer.weight_decay), 1), u.dtype),
              "decayed");
  }
  return u.done(w.sub(decayed, w.div(w.mul(first, step), denominator), "updated.parameter"),
                {first, second});
}

}  // namespace

UpdateRule::UpdateRule(const directive::Settings& settings)
    : optimizer(settings.optimizer.value_or(Optimizer())),
      ema(settings.ema),
      skips(settings.skip_above.has_value()) {}

UpdateRule update_rule(const dag::Dag& dag, const dag::Bucket& bucket) {
  UpdateRule rule(dag.settings);
  const dag::Tuning tuning = dag::tuning_of(dag);
  if (tuning.rates) rule.rates = dag::rate_factors(dag, bucket);
  if (tuning.decays) rule.decays = dag::decay_factors(dag, bucket);
  return rule;
}

UpdateRule update_rule(const dag::Dag& dag, tensor::ParamId param) {
  UpdateRule rule(dag.settings);
  const dag::Tuning tuning = dag::tuning_of(dag);
  const auto uniform = [&](double factor) {
    return tensor::Pieces{{dag.param_types[param.index()].elements()}, {factor}};
  };
  if (tuning.rates) rule.rates = uniform(dag.params[param.index()].rate);
  if (tuning.decays) rule.decays = uniform(dag.params[param.index()].decay);
  return rule;
}

UpdateBody update_body(Context& context, const UpdateRule& rule, DType dtype,
                       std::int64_t elements) {
  Update update(context, rule, dtype, elements);
  switch (rule.optimizer.kind) {
    case Optimizer::Kind::sgd: return sgd_body(update);
    case Optimizer::Kind::adamw: return adamw_body(update);
  }
  llvm_unreachable("no optimizer");
}

KernelBody update_kernels(const UpdateBody& update, Target target) {
  KernelBody kernels = build_kernels(update.body, target, update.in_place);
  constexpr BufferIndex kFactor = 3;
  for (KernelStep& step : kernels.steps) {
    if (update.skips) std::get<Kernel>(step).skipped_by = kFactor;
  }
  return kernels;
}

dag::Body sum_squares_body(Context& context, DType dtype, std::span<const std::int64_t> elements) {
  BodyWriter w(context, "sum_squares");
  std::vector<ValueId> gradients;
  for (std::size_t i = 0; i < elements.size(); ++i)
    gradients.push_back(w.input("gradient_" + std::to_string(i), dtype, elements[i]));
  for (std::size_t i = 0; i < elements.size(); ++i)
    w.output(w.sum(w.square(w.cast(gradients[i], DType::f64)), "square_" + std::to_string(i)));
  return std::move(w.body);
}

dag::Body norm_body(Context& context, std::size_t count, const directive::Settings& settings) {
  return norm_body(context, count, settings.optimizer ? settings.optimizer->clip : std::nullopt,
                   settings.skip_above);
}

dag::Body norm_body(Context& context, std::size_t count, std::optional<double> clip,
                    std::optional<double> skip_above) {
  BodyWriter w(context, "norm");
  std::vector<ValueId> squares;
  for (std::size_t i = 0; i < count; ++i)
    squares.push_back(w.input("square_" + std::to_string(i), DType::f64));
  ValueId total = count == 0 ? w.number(0) : squares[0];
  for (std::size_t i = 1; i < count; ++i) total = w.add(total, squares[i]);
  const ValueId norm = w.sqrt(total, "norm");
  const std::string_view name = skip_above ? "clip_factor" : "factor";
  ValueId factor = clip ? w.minimum(w.number(1), w.div(w.number(*clip), w.offset(norm, 1e-6)), name)
                        : w.number(1, name);
  if (skip_above) {
    // A comparison with a norm that is not a number does not hold.
    const ValueId limit = w.number(*skip_above);
    const ValueId skipped = w.sub(w.number(1), w.select_ge(limit, norm, w.number(1)), "skipped");
    factor = w.sub(w.select_ge(limit, norm, factor), skipped, "factor");
  }
  w.output(norm);
  w.output(factor);
  return std::move(w.body);
}

}  // namespace piper::backend
