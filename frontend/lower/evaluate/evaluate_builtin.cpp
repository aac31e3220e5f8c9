// Calls of builtins on numbers, lists and orders: one small function each.

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/lower/model/model_builder.h"
#include "frontend/lower/schedule/schedule_builder.h"

namespace piper::lower {

using llvm::cast;
using sema::Builtin;

namespace {

/// One call; a function gives no value after a failure.
class BuiltinCall {
 public:
  BuiltinCall(Evaluator& evaluator, const ast::CallExpr& expr, Frame& frame)
      : evaluator_(evaluator),
        expr_(expr),
        frame_(frame),
        id_(static_cast<Builtin>(expr.target)),
        name_(sema::signature(id_).name) {}

  Value left() {
    const auto& op = cast<ast::OpExpr>(*expr_.args[0].value);
    return failed() ? Value() : Value(evaluator_.rank->left(op, frame_));
  }

  Value held() {
    const directive::Selector work = evaluator_.eval_selector(*given(0), frame_);
    const DeviceSetId devices =
        failed() ? DeviceSetId() : evaluator_.eval_devices(*given(1), frame_);
    return failed()
               ? Value()
               : evaluator_.schedule->held(expr_, work, (*evaluator_.device_sets)[devices], frame_);
  }

  Value trim() {
    Value base = evaluator_.eval(*cast<ast::FieldExpr>(*expr_.callee).base, frame_);
    if (failed()) return {};
    OrderValue trimmed = unshare<OrderValue>(std::move(base));
    for (const std::uint32_t position : expr_.rest) {
      if (!trim(trimmed, expr_.args[position])) return {};
    }
    return share(std::move(trimmed));
  }

  Value largest() {
    return extreme([](auto next, auto best) { return next > best; });
  }
  Value smallest() {
    return extreme([](auto next, auto best) { return next < best; });
  }

  Value sum() {
    const Values values = elements(argument(0));
    if (failed()) return {};
    if (values.empty()) return convert(Value(std::int64_t{0}));
    Value total = convert(values[0]);
    for (std::size_t i = 1; i < values.size(); ++i) {
      if (!add(total, convert(values[i]))) return {};
    }
    return total;
  }

  Value len() {
    const Value list = argument(0);
    return failed() ? Value() : Value(static_cast<std::int64_t>(length(list)));
  }

  Value reversed() {
    Values values = elements(argument(0));
    if (failed()) return {};
    std::reverse(values.begin(), values.end());
    return share(std::move(values));
  }

  Value abs() {
    const Value value = argument(0);
    if (failed()) return {};
    if (const double* real = value.get<double>()) return Value(std::fabs(*real));
    const ByteCount* bytes = value.get<ByteCount>();
    const std::int64_t integer = bytes ? bytes->bytes : evaluator_.to_int(value);
    if (integer == std::numeric_limits<std::int64_t>::min()) {
      fail(Code::integer_overflow, "`abs({})` does not fit into 64 bits", integer);
      return {};
    }
    return bytes ? Value(ByteCount{std::abs(integer)}) : Value(std::abs(integer));
  }

  Value ceil_div() {
    const std::int64_t a = evaluator_.to_int(argument(0)), b = evaluator_.to_int(argument(1));
    if (failed()) return {};
    if (b == 0) {
      evaluator_.divided_by_zero(*expr_.args[static_cast<std::size_t>(expr_.matched[1])].value,
                                 frame_);
      return {};
    }
    if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) {
      fail(Code::integer_overflow, "`ceil_div({}, {})` does not fit into 64 bits", a, b);
      return {};
    }
    return Value(a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0));
  }

  /// `ceil`, `floor`, and `round` by itself.
  Value rounded(double (*toward)(double)) {
    const double x = evaluator_.to_float(argument(0));
    if (failed()) return {};
    if (const auto integer = rounded_to_int(toward(x))) return Value(*integer);
    fail(Code::integer_overflow, "`{}` of `{}` does not fit into 64 bits", name_, x);
    return {};
  }

  Value exp() { return Value(std::exp(evaluator_.to_float(argument(0)))); }

  Value log() {
    const std::optional<double> x = real_argument([](double value) { return value > 0; });
    return x ? Value(std::log(*x)) : Value();
  }

  Value sqrt() {
    const std::optional<double> x = real_argument([](double value) { return value >= 0; });
    return x ? Value(std::sqrt(*x)) : Value();
  }

 private:
  bool failed() const { return evaluator_.failed(); }
  /// The argument of a parameter without a default.
  const ast::Expr* given(std::size_t param) const {
    return expr_.args[static_cast<std::size_t>(expr_.matched[param])].value;
  }
  Value argument(std::size_t param) {
    return evaluator_.argument(expr_, param, frame_).value_or(Value());
  }

  template <typename... Args>
  DiagnosticBuilder fail(Code code, MessagePattern<std::type_identity_t<Args>...> pattern,
                         const Args&... args) {
    return evaluator_.fail(code, expr_.range, frame_, pattern, args...);
  }

  Values elements(const Value& list) { return evaluator_.elements(list, expr_.range, frame_); }
  /// As the call's result: the analysis knows the common type of the values; a lone list may still
  /// mix numbers.
  Value convert(Value value) {
    return evaluator_.convert(std::move(value), sema::type_of(expr_), expr_.range, frame_);
  }

  bool trim(OrderValue& order, const ast::Arg& bound) {
    const std::int64_t keep = evaluator_.eval_int(*bound.value, frame_);
    if (failed()) return false;
    if (keep <= 0) {
      evaluator_.fail(Code::trim_to_nothing, bound.value->range, frame_,
                      "`trim` keeps `{}` of `{}`; nothing is left", keep, bound.name.name);
      return false;
    }
    directive::Order::Trim trim;
    trim.dim = evaluator_.context().symbol(bound.name.name);
    trim.bound = static_cast<std::uint32_t>(std::min<std::int64_t>(keep, 0x7FFFFFFF));
    trim.loc = evaluator_.here(bound.range, frame_);
    order.order.trims.push_back(trim);
    std::erase_if(order.pending, [&](const PendingGradient& pending) {
      for (std::uint32_t c = 0; c < pending.op.num_coordinates; ++c) {
        const directive::OrderCoordinate& at =
            order.order.coordinates[pending.op.first_coordinate + c];
        if (at.name == trim.dim && !at.rest && at.index >= trim.bound) return true;
      }
      return false;
    });
    return true;
  }

  /// The best of all arguments and of the elements of list arguments, the first of equal ones.
  template <typename Better>
  Value extreme(const Better& better) {
    Values values;
    for (const std::uint32_t position : expr_.rest) {
      for (Value& value : elements(evaluator_.eval(*expr_.args[position].value, frame_)))
        values.push_back(std::move(value));
      if (failed()) return {};
    }
    if (values.empty()) {
      fail(Code::empty_list, "`{}` of an empty list has no value", name_)
          .hint("add a value that is always present, such as `{}(0, ...)`", name_);
      return {};
    }
    Value best = convert(values[0]);
    for (std::size_t i = 1; i < values.size(); ++i) {
      Value next = convert(values[i]);
      const bool wins = best.get<std::int64_t>()
                            ? better(evaluator_.to_int(next), evaluator_.to_int(best))
                            : better(evaluator_.to_float(next), evaluator_.to_float(best));
      if (wins) best = std::move(next);
    }
    return best;
  }

  bool add(Value& total, const Value& next) {
    if (total.get<double>()) {
      total = Value(evaluator_.to_float(total) + evaluator_.to_float(next));
      return true;
    }
    const bool bytes = total.get<ByteCount>() != nullptr;
    const auto raw = [&](const Value& value) {
      return bytes ? value.get<ByteCount>()->bytes : evaluator_.to_int(value);
    };
    std::int64_t sum = 0;
    if (__builtin_add_overflow(raw(total), raw(next), &sum)) {
      fail(Code::integer_overflow, "the sum does not fit into 64 bits");
      return false;
    }
    total = bytes ? Value(ByteCount{sum}) : Value(sum);
    return true;
  }

  template <typename Defined>
  std::optional<double> real_argument(const Defined& defined) {
    const double x = evaluator_.to_float(argument(0));
    if (failed()) return std::nullopt;
    if (defined(x) || std::isnan(x)) return x;
    fail(Code::no_real_result, "`{}` of `{}` has no value", name_, x);
    return std::nullopt;
  }

  Evaluator& evaluator_;
  const ast::CallExpr& expr_;
  Frame& frame_;
  Builtin id_;
  std::string_view name_;
};

bool takes_tensor(const sema::Signature& signature) {
  return !signature.params.empty() && signature.params[0].type.is_tensor();
}

}  // namespace

Value Evaluator::eval_builtin(const ast::CallExpr& expr, Frame& frame) {
  const auto id = static_cast<Builtin>(expr.target);
  if (takes_tensor(sema::signature(id))) return model->builtin(id, expr, frame);
  BuiltinCall call(*this, expr, frame);
  switch (id) {
    case Builtin::held: return call.held();
    case Builtin::left: return call.left();
    case Builtin::trim: return call.trim();
    case Builtin::before:
    case Builtin::compact:
    case Builtin::fill:
    case Builtin::greedy:
    case Builtin::only:
    case Builtin::postpone:
    case Builtin::search:
    case Builtin::squeeze:
    case Builtin::swap: return eval_order_call(id, expr, frame);
    case Builtin::number_max: return call.largest();
    case Builtin::number_min: return call.smallest();
    case Builtin::number_sum: return call.sum();
    case Builtin::len: return call.len();
    case Builtin::reversed: return call.reversed();
    case Builtin::abs: return call.abs();
    case Builtin::ceil_div: return call.ceil_div();
    case Builtin::ceil: return call.rounded([](double x) { return std::ceil(x); });
    case Builtin::floor: return call.rounded([](double x) { return std::floor(x); });
    case Builtin::round: return call.rounded([](double x) { return x; });
    case Builtin::number_exp: return call.exp();
    case Builtin::number_log: return call.log();
    case Builtin::number_sqrt: return call.sqrt();
    default: return eval_setting_call(id, expr, frame);
  }
}

Value Evaluator::eval_builtin_value(Builtin id) {
  switch (id) {
    case Builtin::ones: return share(tensor::Init{tensor::Init::Kind::ones, 1});
    case Builtin::zeros: return share(tensor::Init{tensor::Init::Kind::zeros, 0});
    case Builtin::bf16: return Value(tensor::DType::bf16);
    case Builtin::f32: return Value(tensor::DType::f32);
    case Builtin::f64: return Value(tensor::DType::f64);
    case Builtin::cpu: return Value(directive::Platform::cpu);
    case Builtin::cuda: return Value(directive::Platform::cuda);
    case Builtin::epoch: return Value(directive::Sampling::epoch);
    case Builtin::replacement: return Value(directive::Sampling::replacement);
    case Builtin::span: return Value(orders::Objective::span);
    case Builtin::makespan: return Value(orders::Objective::makespan);
    case Builtin::u8: return Value(directive::TokenType::u8);
    case Builtin::u16: return Value(directive::TokenType::u16);
    case Builtin::u32: return Value(directive::TokenType::u32);
    case Builtin::i32: return Value(directive::TokenType::i32);
    case Builtin::init: return Value(Fallback::init);
    case Builtin::all: return Value(directive::Decay::all);
    case Builtin::matrices: return Value(directive::Decay::matrices);
#define PROCESSOR(name, f64, f32, bf16, bandwidth) \
  case Builtin::name: return Value(find_processor(#name));
#include "ir/processors.def"
#undef PROCESSOR
    default: break;
  }
  if (const auto measure = sema::measure_of(id)) return Value(MeasureValue{*measure});
  set_failed();
  return {};
}

}  // namespace piper::lower
