// Expressions: names, literals, lists, arithmetic, comparisons, indexing.

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/lower/evaluate/evaluator.h"
#include "frontend/lower/model/model_builder.h"

namespace piper::lower {

using llvm::cast;
using llvm::dyn_cast;

bool Evaluator::step_elements(const Value& value, SourceRange range, const Frame& frame) {
  if (failed_) return false;
  const std::uint64_t elements = length(value);
  if (elements <= kMaxSteps / kStepsOfElement)
    return step(range, frame, kStepsOfElement * elements);
  const std::string what = value.get<Range>() ? "`" + describe(value) + "`" : "this list";
  fail(Code::evaluation_too_long, range, frame, "{} has {} elements; a list has at most {}", what,
       elements, kMaxSteps / kStepsOfElement)
      .hint("make it shorter, or count in a loop: `0..n` alone takes no memory");
  return false;
}

bool Evaluator::out_of_steps(SourceRange range, const Frame& frame, std::uint64_t count) {
  if (failed_) return false;
  constexpr std::size_t kShown = 3;
  if (count > kMaxSteps) {
    const std::string steps =
        count == kUncounted
            ? "more than " + std::to_string(std::numeric_limits<std::int64_t>::max())
            : std::to_string(count);
    fail(Code::evaluation_too_long, range, frame,
         "this alone takes {} steps; the evaluation of a program may take {}", steps, kMaxSteps)
        .hint(
            "make it shorter: each round of a loop, and each element of a range or list that is walked through, is a step");
    return false;
  }
  // The loop at fault is unknown; the innermost has most iterations.
  const bool loops = !loops_.empty();
  auto&& report =
      fail_at(Code::evaluation_too_long,
              loops ? context_->locations.intern(loops_.back().bounds, loops_.back().caller)
                    : here(range, frame),
              "the evaluation of the program takes more than {} steps", kMaxSteps);
  for (std::size_t i = 0; i < std::min(kShown, loops_.size()); ++i) {
    const Loop& loop = loops_[loops_.size() - 1 - i];
    report.related(loop.bounds, "this loop is in round {} of {}", loop.done, loop.rounds);
  }
  if (loops) {
    report.hint("make loops and lists shorter: the rounds of loops inside each other multiply");
  } else {
    report.hint("call functions less often: calls of calls multiply");
  }
  return false;
}

LocId Evaluator::here(SourceRange range, const Frame& frame) {
  return context_->locations.intern(range, frame.caller);
}

Value Evaluator::eval(const ast::Expr& expr, Frame& frame) {
  if (!step(expr.range, frame)) return {};
  if (nesting_ == kMaxNesting) {
    fail(Code::calls_too_deep, expr.range, frame,
         "more than {} expressions and statements are inside each other here", kMaxNesting)
        .hint("calls count too, three levels each: write a long chain of calls as a loop");
    return {};
  }
  ++nesting_;
  Value value = eval_node(expr, frame);
  --nesting_;
  // A name without a value: its declaration failed.
  if (value.none() && !sema::type_of(expr).is(sema::TypeKind::none)) set_failed();
  if (failed_) return {};
  if (observations != nullptr)
    observations->note(expr.range, value, {context(), *mesh, *device_sets}, observed_model);
  return value;
}

Value Evaluator::eval_node(const ast::Expr& expr, Frame& frame) {
  switch (expr.kind) {
    case ast::ExprKind::name: return eval_name(cast<ast::NameExpr>(expr), frame);
    case ast::ExprKind::number: return eval_number(cast<ast::NumberExpr>(expr));
    case ast::ExprKind::string: return share(std::string(cast<ast::StringExpr>(expr).value));
    case ast::ExprKind::boolean: return Value(cast<ast::BoolExpr>(expr).value);
    case ast::ExprKind::list:
      return convert(eval_list(cast<ast::ListExpr>(expr).elements, frame), sema::type_of(expr),
                     expr.range, frame);
    case ast::ExprKind::comprehension:
      return convert(eval_comprehension(cast<ast::ComprehensionExpr>(expr), frame),
                     sema::type_of(expr), expr.range, frame);
    case ast::ExprKind::unary: return eval_unary(cast<ast::UnaryExpr>(expr), frame);
    case ast::ExprKind::binary: return eval_binary(cast<ast::BinaryExpr>(expr), frame);
    case ast::ExprKind::conditional: {
      const auto& conditional = cast<ast::ConditionalExpr>(expr);
      const bool holds = eval_bool(*conditional.condition, frame);
      if (failed_) return {};
      return convert(eval(holds ? *conditional.then_value : *conditional.else_value, frame),
                     sema::type_of(expr), expr.range, frame);
    }
    case ast::ExprKind::index:
      if (is_written_selector(expr)) return share(eval_selector(expr, frame));
      return eval_index(cast<ast::IndexExpr>(expr), frame);
    case ast::ExprKind::call: return eval_call(cast<ast::CallExpr>(expr), frame);
    case ast::ExprKind::model:
    case ast::ExprKind::field:
    case ast::ExprKind::selector: return share(eval_selector(expr, frame));
    case ast::ExprKind::error:
    case ast::ExprKind::op: break;
  }
  set_failed();
  return {};
}

Value Evaluator::eval_name(const ast::NameExpr& expr, Frame& frame) {
  switch (expr.referent) {
    case ast::Referent::local: return frame.slots[expr.target];
    case ast::Referent::param: return param(expr.target);
    case ast::Referent::builtin: return eval_builtin_value(static_cast<sema::Builtin>(expr.target));
    case ast::Referent::label: return share(eval_selector(expr, frame));
    case ast::Referent::names: return Value(NamesValue{expr.target});
    case ast::Referent::function:
    case ast::Referent::unresolved: break;
  }
  set_failed();
  return {};
}

Value Evaluator::param(std::size_t position) {
  std::optional<Value>& known = params[position];
  if (!program_->params[position].sound) {
    set_failed();
    return {};
  }
  if (!known) {
    // The analysis has refused params that need each other.
    Values values = values_of_param(position);
    known = values.empty() ? Value() : std::move(values.front());
  }
  return *known;
}

Values Evaluator::values_of_param(std::size_t position) {
  const sema::Param& param = program_->params[position];
  const ast::Expr& written = *param.syntax->value;
  Frame frame;
  frame.slots.resize(param.frame_size);
  const Value value = eval(written, frame);
  Values values = param.syntax->has_choices ? elements(value, written.range, frame) : Values{value};
  if (failed_) return {};
  if (values.empty()) {
    fail(Code::empty_list, written.range, frame, "`{}` has no choices: the list is empty",
         param.syntax->name.name);
  }
  for (Value& one : values) one = convert(std::move(one), param.type, written.range, frame);
  return failed_ ? Values() : values;
}

Value Evaluator::eval_number(const ast::NumberExpr& expr) const {
  switch (expr.unit) {
    case ast::Unit::none: return expr.is_integer ? Value(expr.integer) : Value(expr.real);
    case ast::Unit::kib:
    case ast::Unit::mib:
    case ast::Unit::gib:
      return Value(ByteCount{rounded_to_int(expr.real * ast::unit_bytes(expr.unit))
                                 .value_or(std::numeric_limits<std::int64_t>::max())});
    case ast::Unit::ns: return Value(expr.real * 1e-9);
    case ast::Unit::us: return Value(expr.real * 1e-6);
    case ast::Unit::ms: return Value(expr.real * 1e-3);
    case ast::Unit::s: return Value(expr.real);
  }
  return {};
}

namespace {

void splice(Values& list, Value value) {
  if (const Values* inner = value.shared<Values>()) {
    list.insert(list.end(), inner->begin(), inner->end());
  } else if (const Range* range = value.get<Range>()) {
    for (std::int64_t i = 0; i < range->size(); ++i)
      list.emplace_back(range->begin + i * range->step);
  } else {
    list.push_back(std::move(value));
  }
}

}  // namespace

Value Evaluator::eval_list(std::span<ast::Expr* const> elements, Frame& frame) {
  Values list;
  for (const ast::Expr* element : elements) {
    const Value value = eval(*element, frame);
    if (!step_elements(value, element->range, frame)) return {};
    splice(list, value);
  }
  return share(std::move(list));
}

Value Evaluator::eval_comprehension(const ast::ComprehensionExpr& expr, Frame& frame) {
  Values list;
  const auto each = [&](const auto& self, std::size_t depth) -> void {
    if (depth == expr.bindings.size()) {
      for (const ast::Expr* element : expr.elements) {
        const Value value = eval(*element, frame);
        if (!step_elements(value, element->range, frame)) return;
        splice(list, value);
      }
      return;
    }
    const ast::Binding& binding = expr.bindings[depth];
    const Value range = eval(*binding.values, frame);
    const Values values = elements(range, binding.values->range, frame);
    if (failed_) return;
    Running loop(*this, binding.values->range, frame, values.size());
    for (const Value& value : values) {
      loop.next();
      context_->poll();
      if (!step(expr.range, frame)) return;
      frame.slots[binding.name.binding] = value;
      self(self, depth + 1);
      if (failed_) return;
    }
  };
  each(each, 0);
  return failed_ ? Value() : share(std::move(list));
}

Value Evaluator::eval_unary(const ast::UnaryExpr& expr, Frame& frame) {
  const Value operand = eval(*expr.operand, frame);
  if (failed_) return {};
  if (expr.op == ast::UnaryOp::logical_not) return Value(!*operand.get<bool>());
  if (operand.get<TensorValue>()) return model->negate(expr, operand, frame);
  if (const double* real = operand.get<double>()) return Value(-*real);
  if (const ByteCount* bytes = operand.get<ByteCount>()) return Value(ByteCount{-bytes->bytes});
  const std::int64_t integer = to_int(operand);
  if (integer == std::numeric_limits<std::int64_t>::min()) {
    fail(Code::integer_overflow, expr.range, frame, "`-({})` does not fit into 64 bits", integer);
    return {};
  }
  return Value(-integer);
}

Value Evaluator::eval_binary(const ast::BinaryExpr& expr, Frame& frame) {
  const Value left = eval(*expr.left, frame);
  if (failed_) return {};
  if (expr.op == ast::BinaryOp::logical_and || expr.op == ast::BinaryOp::logical_or) {
    const bool decided = *left.get<bool>() == (expr.op == ast::BinaryOp::logical_or);
    return decided ? left : eval(*expr.right, frame);
  }
  const Value right = eval(*expr.right, frame);
  if (failed_) return {};
  if (left.get<TensorValue>() || right.get<TensorValue>())
    return model->binary(expr, left, right, frame);
  switch (expr.op) {
    case ast::BinaryOp::range: {
      const Range range{to_int(left), to_int(right), 1};
      std::int64_t size = 0;
      if (__builtin_sub_overflow(range.end, range.begin, &size)) {
        fail(Code::integer_overflow, expr.range, frame,
             "the length of `{}..{}` does not fit into 64 bits", range.begin, range.end);
        return {};
      }
      return Value(range);
    }
    case ast::BinaryOp::by: {
      if (const Values* list = left.shared<Values>()) {
        const std::int64_t every = to_int(right);
        Values kept;
        for (std::size_t i = 0; every > 0 && i < list->size(); i += static_cast<std::size_t>(every))
          kept.push_back((*list)[i]);
        if (every > 0) return share(std::move(kept));
      }
      Range range = left.get<Range>() ? *left.get<Range>() : Range{};
      const std::int64_t step = to_int(right);
      if (step <= 0) {
        fail(Code::step_not_positive, expr.right->range, frame,
             "a range goes by `{}`; the step must be positive", step)
            .hint("write `reversed({})` to count down", ast::source_text(*expr.left));
        return {};
      }
      if (__builtin_mul_overflow(range.step, step, &range.step))
        range.step = std::numeric_limits<std::int64_t>::max();
      return Value(range);
    }
    case ast::BinaryOp::equal:
    case ast::BinaryOp::not_equal:
    case ast::BinaryOp::less:
    case ast::BinaryOp::less_equal:
    case ast::BinaryOp::greater:
    case ast::BinaryOp::greater_equal: return eval_compare(expr, left, right, frame);
    default: return arithmetic(expr, left, right, frame);
  }
}

void Evaluator::divided_by_zero(const ast::Expr& divisor, const Frame& frame) {
  if (divisor.kind == ast::ExprKind::number) {
    fail(Code::division_by_zero, divisor.range, frame, "this divides by 0");
  } else {
    fail(Code::division_by_zero, divisor.range, frame, "`{}` is 0 here and divides",
         ast::source_text(divisor));
  }
}

namespace {

template <typename T>
bool compare(ast::BinaryOp op, const T& a, const T& b) {
  switch (op) {
    case ast::BinaryOp::equal: return a == b;
    case ast::BinaryOp::not_equal: return a != b;
    case ast::BinaryOp::less: return a < b;
    case ast::BinaryOp::less_equal: return a <= b;
    case ast::BinaryOp::greater: return a > b;
    default: return a >= b;
  }
}

directive::Compare compare_of(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::equal: return directive::Compare::equal;
    case ast::BinaryOp::not_equal: return directive::Compare::not_equal;
    case ast::BinaryOp::less: return directive::Compare::less;
    case ast::BinaryOp::less_equal: return directive::Compare::less_equal;
    case ast::BinaryOp::greater: return directive::Compare::greater;
    default: return directive::Compare::greater_equal;
  }
}

directive::Compare mirrored(directive::Compare compare) {
  switch (compare) {
    case directive::Compare::less: return directive::Compare::greater;
    case directive::Compare::less_equal: return directive::Compare::greater_equal;
    case directive::Compare::greater: return directive::Compare::less;
    case directive::Compare::greater_equal: return directive::Compare::less_equal;
    default: return compare;
  }
}

bool is_integral(const Value& value) { return value.get<std::int64_t>() || value.get<AxisValue>(); }

}  // namespace

Value Evaluator::eval_compare(const ast::BinaryExpr& expr, const Value& left, const Value& right,
                              Frame&) {
  if (const MeasureValue* measure = left.get<MeasureValue>()) {
    return share(MeasureTest{measure->measure, compare_of(expr.op), to_float(right)});
  }
  if (const MeasureValue* measure = right.get<MeasureValue>()) {
    return share(MeasureTest{measure->measure, mirrored(compare_of(expr.op)), to_float(left)});
  }
  if (is_integral(left) && is_integral(right))
    return Value(compare(expr.op, to_int(left), to_int(right)));
  if (left.get<bool>()) return Value(compare(expr.op, *left.get<bool>(), *right.get<bool>()));
  if (left.shared<std::string>())
    return Value(compare(expr.op, *left.shared<std::string>(), *right.shared<std::string>()));
  if (left.get<DeviceSetId>())
    return Value(compare(expr.op, *left.get<DeviceSetId>(), *right.get<DeviceSetId>()));
  if (left.get<tensor::DType>())
    return Value(compare(expr.op, *left.get<tensor::DType>(), *right.get<tensor::DType>()));
  return Value(compare(expr.op, to_float(left), to_float(right)));
}

Value Evaluator::arithmetic(const ast::BinaryExpr& expr, const Value& left, const Value& right,
                            Frame& frame) {
  const bool divides = expr.op == ast::BinaryOp::divide || expr.op == ast::BinaryOp::remainder;
  const bool bytes = left.get<ByteCount>() || right.get<ByteCount>();
  const bool integral = (is_integral(left) || left.get<ByteCount>()) &&
                        (is_integral(right) || right.get<ByteCount>());
  if (divides && to_float(right) == 0) {
    divided_by_zero(*expr.right, frame);
    return {};
  }
  const bool ratio =
      expr.op == ast::BinaryOp::divide && left.get<ByteCount>() && right.get<ByteCount>();
  if (!integral || ratio) {
    const double a = to_float(left), b = to_float(right);
    double result = 0;
    switch (expr.op) {
      case ast::BinaryOp::multiply: result = a * b; break;
      case ast::BinaryOp::divide: result = a / b; break;
      case ast::BinaryOp::remainder: result = a - std::floor(a / b) * b; break;
      case ast::BinaryOp::add: result = a + b; break;
      default: result = a - b; break;
    }
    if (!bytes || ratio) return Value(result);
    const std::optional<std::int64_t> rounded = rounded_to_int(result);
    if (rounded) return Value(ByteCount{*rounded});
    fail(Code::integer_overflow, expr.range, frame, "`{} {} {}` does not fit into 64 bits", a,
         ast::op_text(expr.op), b);
    return {};
  }
  const auto raw = [&](const Value& value) {
    return value.get<ByteCount>() ? value.get<ByteCount>()->bytes : to_int(value);
  };
  const std::int64_t a = raw(left), b = raw(right);
  std::int64_t result = 0;
  bool overflow = false;
  switch (expr.op) {
    case ast::BinaryOp::multiply: overflow = __builtin_mul_overflow(a, b, &result); break;
    case ast::BinaryOp::add: overflow = __builtin_add_overflow(a, b, &result); break;
    case ast::BinaryOp::subtract: overflow = __builtin_sub_overflow(a, b, &result); break;
    default: {
      overflow = b == -1 && a == std::numeric_limits<std::int64_t>::min();
      if (overflow) break;
      std::int64_t quotient = a / b;
      if (a % b != 0 && (a < 0) != (b < 0)) --quotient;
      result = expr.op == ast::BinaryOp::divide ? quotient : a - quotient * b;
      break;
    }
  }
  if (overflow) {
    fail(Code::integer_overflow, expr.range, frame, "`{} {} {}` does not fit into 64 bits", a,
         ast::op_text(expr.op), b);
    return {};
  }
  return bytes ? Value(ByteCount{result}) : Value(result);
}

bool Evaluator::in_range(const ast::IndexExpr& expr, const ast::Expr& at, std::int64_t index,
                         std::int64_t size, std::string_view what, Frame& frame) {
  if (index >= 0 && index < size) return true;
  const std::string name = ast::source_text(*expr.base);
  if (size == 0) {
    fail(Code::index_out_of_range, at.range, frame, "`{}` has no element `{}`: it is empty", name,
         index);
  } else {
    fail(Code::index_out_of_range, at.range, frame, "`{}` has no {} `{}`: they go from 0 to {}",
         name, what, index, size - 1);
  }
  return false;
}

bool Evaluator::has_coordinate(const ast::IndexExpr& expr, const ast::Expr& at, std::int64_t index,
                               const AxisValue& axis, Frame& frame) {
  return in_range(expr, at, index, axis.size, "coordinate", frame);
}

Value Evaluator::eval_index(const ast::IndexExpr& expr, Frame& frame) {
  const Value base = eval(*expr.base, frame);
  if (failed_) return {};
  const Value at = eval(*expr.indices[0], frame);
  const Values indices = elements(at, expr.indices[0]->range, frame);
  if (failed_) return {};
  const bool one = !sema::type_of(*expr.indices[0]).list;
  if (const AxisValue* axis = base.get<AxisValue>()) {
    if (indices.size() != 1) {
      fail(Code::wrong_number_of_values, expr.indices[0]->range, frame,
           "an axis is given {} coordinates; a device set fixes one", indices.size())
          .hint("write `{}[i]` in a loop over the coordinates", ast::source_text(*expr.base));
      return {};
    }
    const std::int64_t index = to_int(indices[0]);
    if (!has_coordinate(expr, *expr.indices[0], index, *axis, frame)) return {};
    DeviceSet set{std::vector<std::int32_t>(mesh->axes.size(), DeviceSet::kWhole)};
    set.at[axis->axis] = static_cast<std::int32_t>(index);
    return Value(device_sets->intern(set));
  }
  Values picked;
  const Range* range = base.get<Range>();
  const Values* list = base.shared<Values>();
  const std::int64_t size = range ? range->size() : static_cast<std::int64_t>(list->size());
  for (const Value& value : indices) {
    const std::int64_t index = to_int(value);
    if (!in_range(expr, *expr.indices[0], index, size, "element", frame)) return {};
    picked.push_back(range ? Value(range->begin + index * range->step)
                           : (*list)[static_cast<std::size_t>(index)]);
  }
  return one ? picked[0] : share(std::move(picked));
}

Value Evaluator::convert(Value value, sema::Type type, SourceRange range, const Frame& frame) {
  switch (type.kind) {
    case sema::TypeKind::integer:
    case sema::TypeKind::floating:
    case sema::TypeKind::bytes:
    case sema::TypeKind::number:
    case sema::TypeKind::rate: break;
    default: return value;
  }
  if (!type.list) {
    if (value.get<AxisValue>()) value = Value(to_int(value));
    const std::int64_t* integer = value.get<std::int64_t>();
    if (integer && type.kind == sema::TypeKind::floating)
      return Value(static_cast<double>(*integer));
    if (integer && type.kind == sema::TypeKind::bytes) return Value(ByteCount{*integer});
    return value;
  }
  const sema::Type element = type.element();
  const bool widens = type.kind == sema::TypeKind::floating || type.kind == sema::TypeKind::bytes;
  const auto wrong = [&](const Value& v) {
    return v.get<AxisValue>() || (widens && v.get<std::int64_t>());
  };
  const Values* list = value.shared<Values>();
  const bool mixed = value.get<Range>() && widens;
  if (!mixed && (!list || std::none_of(list->begin(), list->end(), wrong))) return value;
  Values converted = elements(value, range, frame);
  if (failed_) return {};
  for (Value& v : converted) v = convert(std::move(v), element, range, frame);
  return share(std::move(converted));
}

std::int64_t Evaluator::to_int(const Value& value) const {
  if (const std::int64_t* integer = value.get<std::int64_t>()) return *integer;
  if (const AxisValue* axis = value.get<AxisValue>()) return axis->size;
  return 0;
}

double Evaluator::to_float(const Value& value) const {
  if (const double* real = value.get<double>()) return *real;
  if (const ByteCount* bytes = value.get<ByteCount>()) return static_cast<double>(bytes->bytes);
  return static_cast<double>(to_int(value));
}

Values Evaluator::elements(const Value& value, SourceRange range, const Frame& frame) {
  Values list;
  if (!step_elements(value, range, frame) || value.none()) return list;
  splice(list, value);
  return list;
}

std::int64_t Evaluator::eval_int(const ast::Expr& expr, Frame& frame) {
  return to_int(eval(expr, frame));
}
double Evaluator::eval_float(const ast::Expr& expr, Frame& frame) {
  return to_float(eval(expr, frame));
}
bool Evaluator::eval_bool(const ast::Expr& expr, Frame& frame) {
  const Value value = eval(expr, frame);
  return !failed_ && *value.get<bool>();
}

DeviceSetId Evaluator::eval_devices(const ast::Expr& expr, Frame& frame) {
  const Value value = eval(expr, frame);
  if (const DeviceSetId* set = value.get<DeviceSetId>()) return *set;
  return failed_ ? DeviceSetId()
                 : device_sets->intern(
                       DeviceSet{std::vector<std::int32_t>(mesh->axes.size(), DeviceSet::kWhole)});
}

}  // namespace piper::lower
