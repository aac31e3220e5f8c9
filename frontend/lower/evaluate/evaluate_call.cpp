// Calls of functions: arguments, frames, orders that they give.

#include "frontend/lower/model/model_builder.h"
#include "frontend/lower/schedule/schedule_builder.h"

namespace piper::lower {

Frame Evaluator::bind(const sema::Function& function, const ast::CallExpr& call, Frame& caller) {
  Frame frame = bind_arguments(function, call, caller);
  bind_defaults(function, call, frame);
  return frame;
}

Frame Evaluator::bind_arguments(const sema::Function& function, const ast::CallExpr& call,
                                Frame& caller) {
  Frame frame;
  frame.slots.resize(function.frame_size);
  if (!function.runnable) {
    set_failed();
    return frame;
  }
  if (!step(call.range, caller, kStepsOfCall)) return frame;
  frame.caller = here(call.range, caller);
  const auto params = function.syntax->params;
  for (std::size_t i = 0; i < params.size() && !failed_; ++i) {
    const std::int32_t position = call.matched[i];
    if (position >= 0) {
      const ast::Expr& given = *call.args[static_cast<std::size_t>(position)].value;
      frame.slots[i] = convert(eval(given, caller), function.params[i], given.range, caller);
    }
  }
  return frame;
}

void Evaluator::bind_defaults(const sema::Function& function, const ast::CallExpr& call,
                              Frame& callee) {
  const auto params = function.syntax->params;
  for (std::size_t i = 0; i < params.size() && !failed_; ++i) {
    if (call.matched[i] >= 0) continue;
    callee.slots[i] = convert(eval(*params[i].default_value, callee), function.params[i],
                              params[i].default_value->range, callee);
  }
}

Value Evaluator::run(const sema::Function& function, Frame& frame) {
  returned_ = Value();
  const bool statements =
      function.sort() != ast::FunctionSort::def || function.result.is(sema::TypeKind::order);
  const bool outer = std::exchange(skips_statements, statements);
  const sema::Function* const caller = std::exchange(running_, &function);
  ++functions_;
  execute(*function.syntax->body, frame);
  --functions_;
  running_ = caller;
  skips_statements = outer;
  abandons_ = false;
  if (failed_) return {};
  return convert(std::exchange(returned_, Value()), function.result, function.syntax->name.range,
                 frame);
}

std::optional<Value> Evaluator::argument(const ast::CallExpr& call, std::size_t param,
                                         Frame& frame) {
  const std::int32_t position = call.matched[param];
  if (position < 0) return std::nullopt;
  const ast::Expr& given = *call.args[static_cast<std::size_t>(position)].value;
  return convert(eval(given, frame),
                 sema::signature(static_cast<sema::Builtin>(call.target)).params[param].type,
                 given.range, frame);
}

Value Evaluator::eval_call(const ast::CallExpr& expr, Frame& frame) {
  if (expr.referent == ast::Referent::builtin) return eval_builtin(expr, frame);
  const sema::Function& function = program_->functions[expr.target];
  if (function.sort() == ast::FunctionSort::model) return model->call(function, expr, frame);
  if (function.sort() == ast::FunctionSort::schedule) {
    if (schedule == nullptr) set_failed();  // refused by the analysis
    return schedule == nullptr ? Value() : schedule->order_of(function, expr, frame);
  }
  Frame callee = bind(function, expr, frame);
  if (failed_) return {};
  if (!function.result.is(sema::TypeKind::order)) return run(function, callee);
  OrderBuilder builder(*this);
  OrderBuilder* const outer = std::exchange(order, &builder);
  Value result = run(function, callee);
  order = outer;
  if (failed_) return {};
  return result.none() ? share(builder.take()) : result;
}

}  // namespace piper::lower
