// Statements: the ones of every body here, the others by the builder in force.

#include "frontend/lower/evaluate/legal_sizes.h"
#include "frontend/lower/schedule/machine_builder.h"
#include "frontend/lower/model/model_builder.h"
#include "frontend/lower/schedule/schedule_builder.h"
#include "ir/diagnostics/counted.h"

namespace piper::lower {

using llvm::cast;

Flow Evaluator::execute(const ast::Block& block, Frame& frame) {
  for (const ast::Stmt* stmt : block.statements) {
    const Flow flow = execute(*stmt, frame);
    if (flow == Flow::failed && leave_out(*stmt, frame)) {
      if (stmt->kind == ast::StmtKind::return_value) return Flow::returned;
      continue;
    }
    if (flow != Flow::next) return flow;
  }
  return failed_ ? Flow::failed : Flow::next;
}

Flow Evaluator::execute(const ast::Stmt& stmt, Frame& frame) {
  if (!step(stmt.range, frame)) return Flow::failed;
  if (stmt.refused) {
    set_failed();
    return Flow::failed;
  }
  if (nesting_ == kMaxNesting) {
    fail(Code::calls_too_deep, stmt.range, frame,
         "more than {} expressions and statements are inside each other here", kMaxNesting)
        .hint("calls count too, three levels each: write a long chain of calls as a loop");
    return Flow::failed;
  }
  ++nesting_;
  const Flow flow = execute_node(stmt, frame);
  --nesting_;
  return flow;
}

Flow Evaluator::execute_node(const ast::Stmt& stmt, Frame& frame) {
  // Orders are long, so the most frequent statements of ranks do not share the stack frames of the
  // others.
  switch (stmt.kind) {
    case ast::StmtKind::step: rank->step(cast<ast::StepStmt>(stmt).step, frame); break;
    case ast::StmtKind::let: execute_let(cast<ast::LetStmt>(stmt), frame); break;
    case ast::StmtKind::var: {
      const auto& var = cast<ast::VarStmt>(stmt);
      Value value = convert(eval(*var.value, frame), sema::Type::from_bits(var.type),
                            var.value->range, frame);
      frame.slots[var.name.binding] = std::move(value);
      break;
    }
    case ast::StmtKind::assign: execute_assign(cast<ast::AssignStmt>(stmt), frame); break;
    case ast::StmtKind::expr: return execute_call(cast<ast::ExprStmt>(stmt), frame);
    case ast::StmtKind::for_loop: {
      const auto& loop = cast<ast::ForStmt>(stmt);
      return behind_loop(stmt, execute_for(loop.bindings, *loop.body, frame), frame);
    }
    case ast::StmtKind::repeat:
      return behind_loop(stmt, execute_repeat(cast<ast::RepeatStmt>(stmt), frame), frame);
    case ast::StmtKind::conditional: {
      const auto& conditional = cast<ast::IfStmt>(stmt);
      for (const ast::Branch& branch : conditional.branches) {
        const bool taken = eval_bool(*branch.condition, frame);
        if (failed_) return Flow::failed;
        if (taken) return execute(*branch.body, frame);
      }
      if (conditional.otherwise) return execute(*conditional.otherwise, frame);
      break;
    }
    case ast::StmtKind::return_value: {
      const ast::Expr* const outer = std::exchange(returning_, cast<ast::ReturnStmt>(stmt).value);
      returned_ = eval(*returning_, frame);
      returning_ = outer;
      return failed_ ? Flow::failed : Flow::returned;
    }
    case ast::StmtKind::require: return execute_require(cast<ast::RequireStmt>(stmt), frame);
    case ast::StmtKind::input: model->input(cast<ast::InputStmt>(stmt), frame); break;
    case ast::StmtKind::weight: model->weight(cast<ast::WeightStmt>(stmt), frame); break;
    case ast::StmtKind::region: return model->region(cast<ast::RegionStmt>(stmt), frame);
    case ast::StmtKind::loss: model->loss(cast<ast::LossStmt>(stmt), frame); break;
    case ast::StmtKind::rank: order->rank(cast<ast::RankStmt>(stmt), frame); break;
    case ast::StmtKind::cursor: rank->cursor(cast<ast::CursorStmt>(stmt), frame); break;
    case ast::StmtKind::at: rank->at(cast<ast::AtStmt>(stmt), frame); break;
    case ast::StmtKind::directive:
    case ast::StmtKind::order: schedule->directive(stmt, frame); break;
    case ast::StmtKind::setting:
      machine != nullptr ? machine->line(cast<ast::SettingStmt>(stmt), frame)
                         : schedule->directive(stmt, frame);
      break;
    case ast::StmtKind::error: set_failed(); break;
  }
  return failed_ ? Flow::failed : Flow::next;
}

void Evaluator::execute_let(const ast::LetStmt& let, Frame& frame) {
  Value value = eval(*let.value, frame);
  if (failed_) return;
  if (let.names.size() == 1) {
    frame.slots[let.names[0].binding] = std::move(value);
    return;
  }
  const Values values = elements(value, let.value->range, frame);
  if (failed_) return;
  if (values.size() != let.names.size()) {
    fail(Code::wrong_number_of_values, let.value->range, frame, "{} names are given {}",
         let.names.size(), counted(values.size(), "value"));
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) frame.slots[let.names[i].binding] = values[i];
}

void Evaluator::execute_assign(const ast::AssignStmt& assign, Frame& frame) {
  Value value = convert(eval(*assign.value, frame), sema::Type::from_bits(assign.type),
                        assign.value->range, frame);
  frame.slots[assign.name.binding] = std::move(value);
}

bool Evaluator::too_many_rounds(std::uint64_t rounds, const ast::Block& body, SourceRange range,
                                const Frame& frame) {
  if (rounds <= kMaxSteps - steps_ || may_return(body)) return false;
  return !step(range, frame, rounds);
}

Flow Evaluator::behind_loop(const ast::Stmt& loop, Flow flow, Frame& frame) {
  if (flow != Flow::next || observations == nullptr || rank == nullptr) return flow;
  for (Observations::Left& left : observations->left_behind(loop.range)) {
    const auto& cursor = *cast<ast::NameExpr>(left.op->operand);
    if (frame.slots[cursor.target].get<CursorValue>() != nullptr)
      Observations::note_left(left, rank->left(*left.op, frame));
  }
  return flow;
}

Flow Evaluator::execute_repeat(const ast::RepeatStmt& repeat, Frame& frame) {
  const std::int64_t count = eval_int(*repeat.count, frame);
  if (failed_) return Flow::failed;
  if (count < 0) {
    fail(Code::negative_repeat, repeat.count->range, frame,
         "`repeat` is given `{}`, which is negative", count)
        .hint("write `max({}, 0)` to repeat nothing then", ast::source_text(*repeat.count));
    return Flow::failed;
  }
  if (too_many_rounds(static_cast<std::uint64_t>(count), *repeat.body, repeat.count->range, frame))
    return Flow::failed;
  Running loop(*this, repeat.count->range, frame, static_cast<std::uint64_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    loop.next();
    context_->poll();
    if (!step(repeat.range, frame)) return Flow::failed;
    const Flow flow = execute(*repeat.body, frame);
    if (flow != Flow::next) return flow;
  }
  return failed_ ? Flow::failed : Flow::next;
}

Flow Evaluator::execute_for(std::span<const ast::Binding> bindings, const ast::Block& body,
                            Frame& frame) {
  if (bindings.empty()) return execute(body, frame);
  const ast::Binding& binding = bindings[0];
  const Value values = eval(*binding.values, frame);
  if (failed_) return Flow::failed;
  Running loop(*this, binding.values->range, frame, length(values));
  const auto once = [&](Value value) {
    loop.next();
    context_->poll();
    if (!step(binding.range, frame)) return Flow::failed;
    frame.slots[binding.name.binding] = std::move(value);
    return execute_for(bindings.subspan(1), body, frame);
  };
  if (const Range* range = values.get<Range>()) {
    if (too_many_rounds(static_cast<std::uint64_t>(range->size()), body, binding.values->range,
                        frame))
      return Flow::failed;
    for (std::int64_t i = 0; i < range->size(); ++i) {
      if (const Flow flow = once(Value(range->begin + i * range->step)); flow != Flow::next)
        return flow;
    }
    return Flow::next;
  }
  Values list = elements(values, binding.values->range, frame);
  if (failed_) return Flow::failed;
  for (Value& value : list) {
    if (const Flow flow = once(std::move(value)); flow != Flow::next) return flow;
  }
  return Flow::next;
}

Flow Evaluator::execute_call(const ast::ExprStmt& stmt, Frame& frame) {
  const auto* call = llvm::dyn_cast<ast::CallExpr>(stmt.value);
  if (!call || call->referent != ast::Referent::function) {
    eval(*stmt.value, frame);
    return failed_ ? Flow::failed : Flow::next;
  }
  const sema::Function& function = program_->functions[call->target];
  if (function.sort() == ast::FunctionSort::schedule) {
    schedule->call(function, *call, frame);
  } else if (function.result.is(sema::TypeKind::steps)) {
    Frame callee = bind(function, *call, frame);
    if (!failed_) run(function, callee);
  } else {
    eval(*call, frame);
  }
  return failed_ ? Flow::failed : Flow::next;
}

Flow Evaluator::execute_require(const ast::RequireStmt& stmt, Frame& frame) {
  // Measures are known after planning, so each comparison that `and` joins is a requirement of its
  // own.
  const auto holds = [&](const auto& self, const ast::Expr& part) -> bool {
    const auto* both = llvm::dyn_cast<ast::BinaryExpr>(&part);
    if (both != nullptr && both->op == ast::BinaryOp::logical_and)
      return self(self, *both->left) && self(self, *both->right);
    const Value condition = eval(part, frame);
    if (failed_) return false;
    const MeasureTest* test = condition.shared<MeasureTest>();
    if (test == nullptr) return *condition.get<bool>();
    directive::Require require;
    require.measure = test->measure;
    require.compare = test->compare;
    require.bound = test->bound;
    if (stmt.message) require.message = std::string(stmt.message->value);
    require.loc = here(part.range, frame);
    schedule->require(std::move(require));
    return true;
  };
  if (holds(holds, *stmt.condition)) return Flow::next;
  if (!failed_) require_failed(stmt, frame);
  return Flow::failed;
}

namespace {

/// `m % p`, `m >= 2*p` and the like: the operands whose values explain why a condition failed.
void collect_operands(const ast::Expr& expr, std::vector<const ast::Expr*>& out) {
  if (const auto* binary = llvm::dyn_cast<ast::BinaryExpr>(&expr)) {
    collect_operands(*binary->left, out);
    collect_operands(*binary->right, out);
  } else if (const auto* unary = llvm::dyn_cast<ast::UnaryExpr>(&expr)) {
    collect_operands(*unary->operand, out);
  } else if (expr.kind == ast::ExprKind::name && !sema::type_of(expr).is(sema::TypeKind::measure)) {
    for (const ast::Expr* seen : out) {
      if (cast<ast::NameExpr>(*seen).name == cast<ast::NameExpr>(expr).name) return;
    }
    out.push_back(&expr);
  }
}

}  // namespace

void Evaluator::require_failed(const ast::RequireStmt& stmt, Frame& frame) {
  std::vector<const ast::Expr*> operands;
  collect_operands(*stmt.condition, operands);
  std::string values;
  for (const ast::Expr* operand : operands) {
    const Value value = eval(*operand, frame);
    if (failed_ || value.none()) continue;
    if (!values.empty()) values += ", ";
    values += "`" + ast::source_text(*operand) + "` is " +
              (value.get<AxisValue>() ? std::to_string(to_int(value)) : describe(value));
  }
  const std::string condition = ast::source_text(*stmt.condition);
  const std::string suffix = values.empty() ? std::string() : " (" + values + ")";
  const std::string message =
      stmt.message ? std::string(stmt.message->value) + ": " : std::string();
  DiagnosticBuilder report = fail(Code::requirement_not_met, stmt.condition->range, frame,
                                  "{}`{}` does not hold{}", message, condition, suffix);
  if (const LocId placement = rank != nullptr ? schedule->held_beside() : LocId();
      placement.valid()) {
    report.related(placement, "the order follows this placement")
        .hint(
            "place the stages so that it holds, or write an `order` beside the call: it replaces the schedule's own");
  } else if (const std::string sizes =
                 rank == nullptr && order == nullptr ? legal_sizes(frame) : std::string();
             !sizes.empty()) {
    report.hint("the nearest that `{}` accepts: {}", running_->name(), sizes);
  }
}

std::string Evaluator::legal_sizes(const Frame& frame) const {
  if (running_ == nullptr || running_->sort() == ast::FunctionSort::def) return {};
  std::vector<std::optional<std::int64_t>> given;
  for (std::size_t i = 0; i < running_->params.size(); ++i) {
    const sema::Type type = running_->params[i];
    const bool size = (type.is(sema::TypeKind::integer) || type.is(sema::TypeKind::axis)) &&
                      !frame.slots[i].none();
    given.push_back(size ? std::optional(to_int(frame.slots[i])) : std::nullopt);
  }
  return nearest_legal_sizes(*running_, given);
}

}  // namespace piper::lower
