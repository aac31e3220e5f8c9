// Calls: functions, builtins on numbers and lists, settings.

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/lower/model_builder.h"
#include "frontend/lower/schedule_builder.h"

namespace piper::lower {

using llvm::cast;
using llvm::dyn_cast;
using sema::Builtin;

Frame Evaluator::bind(const sema::Function& function, const ast::CallExpr& call, Frame& caller) {
  Frame frame = bind_arguments(function, call, caller);
  bind_defaults(function, call, frame);
  return frame;
}

Frame Evaluator::bind_arguments(const sema::Function& function, const ast::CallExpr& call, Frame& caller) {
  Frame frame;
  frame.slots.resize(function.frame_size);
  frame.caller = here(call.range, caller);
  const auto params = function.syntax->params;
  for (std::size_t i = 0; i < params.size() && !failed_; ++i) {
    const std::int32_t position = call.matched[i];
    if (position >= 0) {
      frame.slots[i] = convert(eval(*call.args[static_cast<std::size_t>(position)].value, caller), function.params[i]);
    }
  }
  return frame;
}

void Evaluator::bind_defaults(const sema::Function& function, const ast::CallExpr& call, Frame& callee) {
  const auto params = function.syntax->params;
  for (std::size_t i = 0; i < params.size() && !failed_; ++i) {
    if (call.matched[i] >= 0) continue;
    callee.slots[i] = convert(eval(*params[i].default_value, callee), function.params[i]);
  }
}

Value Evaluator::run(const sema::Function& function, Frame& frame) {
  returned_ = Value();
  const bool statements = function.sort() != ast::FunctionSort::def || function.result.is(sema::TypeKind::order);
  const bool outer = std::exchange(skips_statements, statements);
  ++functions_;
  execute(*function.syntax->body, frame);
  --functions_;
  skips_statements = outer;
  abandons_ = false;
  if (failed_) return {};
  return convert(std::exchange(returned_, Value()), function.result);
}

std::optional<Value> Evaluator::argument(const ast::CallExpr& call, std::size_t param, Frame& frame) {
  const std::int32_t position = call.matched[param];
  if (position < 0) return std::nullopt;
  return eval(*call.args[static_cast<std::size_t>(position)].value, frame);
}

Value Evaluator::eval_call(const ast::CallExpr& expr, Frame& frame) {
  if (expr.referent == ast::Referent::builtin) return eval_builtin(expr, frame);
  const sema::Function& function = program_->functions[expr.target];
  if (function.sort() == ast::FunctionSort::model) return model->call(function, expr, frame);
  Frame callee = bind(function, expr, frame);
  if (failed_) return {};
  if (!function.result.is(sema::TypeKind::order)) return run(function, callee);
  OrderBuilder builder(*this);
  OrderBuilder* const outer = std::exchange(order, &builder);
  Value result = run(function, callee);
  order = outer;
  if (failed_) return {};
  if (!result.none()) return result;
  return builder.complete() ? share(builder.take()) : Value();
}

namespace {

const ast::Expr& argument_expr(const ast::CallExpr& call, std::size_t param) {
  return *call.args[static_cast<std::size_t>(call.matched[param])].value;
}

bool takes_tensor(const sema::Signature& signature) {
  return !signature.params.empty() && (signature.params[0].type.is_tensor());
}

}  // namespace

Value Evaluator::eval_builtin(const ast::CallExpr& expr, Frame& frame) {
  const auto id = static_cast<Builtin>(expr.target);
  if (takes_tensor(sema::signature(id))) return model->builtin(id, expr, frame);
  const auto arg = [&](std::size_t i) { return argument(expr, i, frame).value_or(Value()); };
  switch (id) {
    case Builtin::left: {
      const auto& op = cast<ast::OpExpr>(*expr.args[0].value);
      return failed_ ? Value() : Value(rank->left(op, frame));
    }
    case Builtin::trim: {
      const Value base = eval(*cast<ast::FieldExpr>(*expr.callee).base, frame);
      if (failed_) return {};
      OrderValue trimmed = *base.shared<OrderValue>();
      for (const std::uint32_t position : expr.rest) {
        const ast::Arg& bound = expr.args[position];
        const std::int64_t keep = eval_int(*bound.value, frame);
        if (failed_) return {};
        if (keep <= 0) {
          fail(Code::trim_to_nothing, bound.value->range, frame, "`trim` keeps `{}` of `{}`; nothing is left", keep, bound.name.name);
          return {};
        }
        directive::Order::Transform transform;
        transform.kind = directive::Order::Transform::Kind::trim;
        transform.dim = context_->symbol(bound.name.name);
        transform.bound = static_cast<std::uint32_t>(std::min<std::int64_t>(keep, 0x7FFFFFFF));
        transform.loc = here(bound.range, frame);
        trimmed.order.transforms.push_back(transform);
        std::erase_if(trimmed.pending, [&](const PendingGradient& pending) {
          for (std::uint32_t c = 0; c < pending.op.num_coordinates; ++c) {
            const directive::OrderCoordinate& at = trimmed.order.coordinates[pending.op.first_coordinate + c];
            if (at.name == transform.dim && at.index >= transform.bound) return true;
          }
          return false;
        });
      }
      return share(std::move(trimmed));
    }
    case Builtin::number_max:
    case Builtin::number_min:
    case Builtin::number_sum: {
      Values values;
      if (id == Builtin::number_sum) {
        const Value given = arg(0);
        if (failed_ || !step(expr.range, frame, length(given))) return {};
        values = elements(given);
      } else {
        for (const std::uint32_t position : expr.rest) {
          const Value given = eval(*expr.args[position].value, frame);
          if (failed_ || !step(expr.range, frame, length(given))) return {};
          for (Value& value : elements(given)) values.push_back(std::move(value));
        }
      }
      if (failed_) return {};
      if (values.empty()) {
        if (id == Builtin::number_sum) return convert(Value(std::int64_t{0}), sema::type_of(expr));
        fail(Code::empty_list, expr.range, frame, "`{}` of an empty list has no value", sema::signature(id).name)
            .hint("add a value that always stands, such as `{}(0, ...)`", sema::signature(id).name);
        return {};
      }
      // The analysis knows the common type of the values; a lone list may still mix numbers.
      const sema::Type type = sema::type_of(expr);
      Value best = convert(values[0], type);
      for (std::size_t i = 1; i < values.size(); ++i) {
        const Value next = convert(values[i], type);
        if (id != Builtin::number_sum) {
          const bool better = best.get<std::int64_t>() ? (id == Builtin::number_max ? to_int(next) > to_int(best) : to_int(next) < to_int(best))
                                                       : (id == Builtin::number_max ? to_float(next) > to_float(best) : to_float(next) < to_float(best));
          if (better) best = next;
          continue;
        }
        if (best.get<double>()) {
          best = Value(to_float(best) + to_float(next));
          continue;
        }
        std::int64_t total = 0;
        const bool bytes = best.get<ByteCount>() != nullptr;
        const auto raw = [&](const Value& v) { return bytes ? v.get<ByteCount>()->bytes : to_int(v); };
        if (__builtin_add_overflow(raw(best), raw(next), &total)) {
          fail(Code::integer_overflow, expr.range, frame, "the sum does not fit into 64 bits");
          return {};
        }
        best = bytes ? Value(ByteCount{total}) : Value(total);
      }
      return best;
    }
    case Builtin::len: {
      const Value list = arg(0);
      if (const Range* range = list.get<Range>()) return Value(range->size());
      return Value(static_cast<std::int64_t>(elements(list).size()));
    }
    case Builtin::reversed: {
      const Value list = arg(0);
      if (failed_ || !step(expr.range, frame, length(list))) return {};
      Values values = elements(list);
      std::reverse(values.begin(), values.end());
      return share(std::move(values));
    }
    case Builtin::abs: {
      const Value value = arg(0);
      if (failed_) return {};
      if (const double* real = value.get<double>()) return Value(std::fabs(*real));
      const ByteCount* bytes = value.get<ByteCount>();
      const std::int64_t integer = bytes ? bytes->bytes : to_int(value);
      if (integer == std::numeric_limits<std::int64_t>::min()) {
        fail(Code::integer_overflow, expr.range, frame, "`abs({})` does not fit into 64 bits", integer);
        return {};
      }
      return bytes ? Value(ByteCount{std::abs(integer)}) : Value(std::abs(integer));
    }
    case Builtin::ceil_div: {
      const std::int64_t a = to_int(arg(0)), b = to_int(arg(1));
      if (failed_) return {};
      if (b == 0) {
        divided_by_zero(argument_expr(expr, 1), frame);
        return {};
      }
      if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) {
        fail(Code::integer_overflow, expr.range, frame, "`ceil_div({}, {})` does not fit into 64 bits", a, b);
        return {};
      }
      return Value(a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0));
    }
    case Builtin::ceil:
    case Builtin::floor:
    case Builtin::round: {
      const double x = to_float(arg(0));
      if (failed_) return {};
      const auto integer = rounded_to_int(id == Builtin::ceil ? std::ceil(x) : id == Builtin::floor ? std::floor(x) : x);
      if (integer) return Value(*integer);
      fail(Code::integer_overflow, expr.range, frame, "`{}` of `{}` does not fit into 64 bits", sema::signature(id).name, x);
      return {};
    }
    case Builtin::number_exp: {
      const double x = to_float(arg(0));
      return Value(std::exp(x));
    }
    case Builtin::number_log:
    case Builtin::number_sqrt: {
      const double x = to_float(arg(0));
      if (failed_) return {};
      if (x < 0 || (x == 0 && id == Builtin::number_log)) {
        fail(Code::no_real_result, expr.range, frame, "`{}` of `{}` has no value", sema::signature(id).name, x);
        return {};
      }
      return Value(id == Builtin::number_log ? std::log(x) : std::sqrt(x));
    }
    default: return eval_setting_call(id, expr, frame);
  }
}

Value Evaluator::eval_builtin_value(Builtin id) {
  switch (id) {
    case Builtin::ones: return share(tensor::Init{tensor::Init::Kind::ones, 1});
    case Builtin::zeros: return share(tensor::Init{tensor::Init::Kind::zeros, 0});
    case Builtin::f32: return Value(tensor::DType::f32);
    case Builtin::f64: return Value(tensor::DType::f64);
    case Builtin::bubble: return Value(MeasureValue{directive::Measure::bubble});
    case Builtin::peak_memory: return Value(MeasureValue{directive::Measure::peak_memory});
    case Builtin::traffic: return Value(MeasureValue{directive::Measure::traffic});
    default: break;
  }
  set_failed();
  return {};
}

}  // namespace piper::lower
