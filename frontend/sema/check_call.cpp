// Calls: the callee, its arguments, its result.

#include "frontend/sema/analyser.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::sema {

namespace {

bool accepts(const Signature& row, Type first) {
  if (!row.params.empty()) return converts(first, row.params.front().type);
  if (row.variadic) return converts(first, row.rest) || converts(first, {row.rest.kind, true});
  return false;
}

}  // namespace

Type Analyser::call(ast::CallExpr& expr, bool as_statement) {
  if (auto* callee = llvm::dyn_cast<ast::FieldExpr>(expr.callee)) {
    if (const FunctionId schedule = named_schedule(*callee->base); schedule.valid())
      return order_of_schedule(expr, *callee, schedule);
    const Type receiver = infer(*callee->base, kOrder);
    if (receiver.is_error() || callee->field.missing()) return kError;
    if (receiver != kOrder) {
      sink_
          .report(Code::unknown_field, callee->field.range, "{} has no method `{}`",
                  with_article(receiver), callee->field.name)
          .hint("only orders have methods");
      return kError;
    }
    const auto rows = find_builtins(callee->field.name, true);
    if (!rows.empty()) return call_builtin(expr, rows);
    if (report_unavailable(callee->field.name, callee->field.range)) return kError;
    auto diagnostic = sink_.report(Code::unknown_field, callee->field.range,
                                   "an `order` has no method `{}`", callee->field.name);
    const std::string_view best = nearest_name(callee->field.name, builtin_names(true));
    if (best.empty()) {
      std::string all;
      for (const std::string_view method : builtin_names(true))
        all += (all.empty() ? "`." : ", `.") + std::string(method) + "`";
      diagnostic.hint("an `order` has {}", all);
    } else {
      diagnostic.hint("did you mean `.{}`?", best).fix(std::string(best));
    }
    return kError;
  }
  auto* callee = llvm::dyn_cast<ast::NameExpr>(expr.callee);
  if (callee == nullptr) {
    if (!llvm::isa<ast::ErrorExpr>(expr.callee)) {
      sink_.report(Code::not_callable, expr.callee->range,
                   "a call begins with the name of a function");
    }
    return kError;
  }
  if (Local* local = find_local(callee->name)) {
    local->used = true;
    if (!local->type.is_error()) {
      sink_
          .report(Code::not_callable, callee->range, "`{}` is {} here, not a function",
                  callee->name, with_article(local->type))
          .related(local->range, "`{}` is declared here", callee->name);
    }
    return kError;
  }
  if (const Declaration* found = find_declaration(callee->name, callee->range)) {
    if (found->kind == DeclKind::function) {
      callee->referent = ast::Referent::function;
      callee->target = found->index;
      return call_function(expr, FunctionId(found->index), as_statement);
    }
    static constexpr std::string_view kNouns[] = {"param", "mesh",    "function",
                                                  "train", "machine", "`names` item"};
    sink_
        .report(Code::not_callable, callee->range, "`{}` is a {}, not a function", callee->name,
                kNouns[static_cast<std::size_t>(found->kind)])
        .related(found->range, "it is declared here");
    return kError;
  }
  const auto rows = find_builtins(callee->name, false);
  if (rows.empty()) {
    if (!report_unavailable(callee->name, callee->range))
      report_unknown_name(callee->name, callee->range, &expr);
    return kError;
  }
  if (rows.front()->is_value) {
    sink_.report(Code::not_callable, callee->range, "`{}` is a value, not a function", callee->name)
        .hint("write `{}` without parentheses", callee->name);
    return kError;
  }
  callee->referent = ast::Referent::builtin;
  callee->target = static_cast<std::uint32_t>(rows.front()->id);
  return call_builtin(expr, rows);
}

FunctionId Analyser::named_schedule(ast::Expr& expr) {
  auto* name = llvm::dyn_cast<ast::NameExpr>(&expr);
  if (name == nullptr || find_local(name->name) != nullptr) return FunctionId();
  const Declaration* found = find_declaration(name->name, name->range);
  if (found == nullptr || found->kind != DeclKind::function ||
      program_.functions[found->index].sort() != ast::FunctionSort::schedule)
    return FunctionId();
  return FunctionId(found->index);
}

Type Analyser::part_of_schedule(ast::FieldExpr& expr, FunctionId schedule) {
  auto& name = llvm::cast<ast::NameExpr>(*expr.base);
  name.referent = ast::Referent::function;
  name.target = schedule.value();
  if (expr.field.missing()) return kError;
  auto diagnostic = sink_.report(Code::unknown_field, expr.field.range,
                                 "a schedule has no part `{}`", expr.field.name);
  if (expr.field.name == "order") {
    diagnostic.hint("it is a method, and is called: write `{}.order(...)`", name.name);
  } else {
    diagnostic.hint("`{}.order(...)` is the order of the schedule", name.name);
  }
  return kError;
}

Type Analyser::order_of_schedule(ast::CallExpr& expr, const ast::FieldExpr& callee,
                                 FunctionId schedule) {
  auto& name = llvm::cast<ast::NameExpr>(*callee.base);
  name.referent = ast::Referent::function;
  name.target = schedule.value();
  if (callee.field.missing()) return kError;
  if (callee.field.name != "order") {
    sink_
        .report(Code::unknown_field, callee.field.range, "a schedule has no method `{}`",
                callee.field.name)
        .hint("`{}.order(...)` is the order of the schedule", name.name);
    return kError;
  }
  call_function(expr, schedule, false, true);
  return kOrder;
}

Type Analyser::call_function(ast::CallExpr& expr, FunctionId id, bool as_statement, bool of_order) {
  const Function& function = program_.functions[id.index()];
  expr.referent = ast::Referent::function;
  expr.target = id.value();
  calls_[body_.node].push_back({id.value(), expr.callee->range});

  std::vector<ParamView> views;
  const std::span<const ast::Param> params = function.syntax->params;
  for (std::size_t i = 0; i < params.size(); ++i) {
    views.push_back({params[i].name.name, function.params[i], params[i].default_value != nullptr,
                     params[i].name.range});
  }
  std::vector<Type> types;
  // If the parameters did not parse, arguments are checked by themselves only.
  const bool unknown = header_damaged(*function.syntax);
  const bool outer = std::exchange(in_damaged_statement_, in_damaged_statement_ || unknown);
  const bool matched =
      match(expr, {function.name(), function.syntax->name.range, views}, std::nullopt, types);
  in_damaged_statement_ = outer;
  if (unknown) return kError;

  const auto misplaced = [&](std::string_view what, std::string_view where) {
    sink_.report(Code::misplaced_call, expr.callee->range, "{} is called only {}", what, where)
        .related(function.syntax->name.range, "`{}` is declared here", function.name());
  };
  const bool in_strategy = body_.sort == BodySort::schedule || body_.sort == BodySort::train;
  if (of_order) return kOrder;
  if (function.sort() == ast::FunctionSort::schedule && !(as_statement && in_strategy)) {
    misplaced("a schedule", "as a statement of a train or another schedule");
    return kError;
  }
  if (function.sort() == ast::FunctionSort::model && body_.sort != BodySort::model) {
    misplaced("a model", "in models, and after the `=` of a train");
    return kError;
  }
  if (function.result.is(TypeKind::steps) && !(as_statement && body_.sort == BodySort::steps)) {
    misplaced("a function that gives `steps`", "as a statement among the steps of a rank");
    return kError;
  }
  return matched ? function.result : function.result.is_error() ? kError : function.result;
}

Type Analyser::call_builtin(ast::CallExpr& expr, std::span<const Signature* const> rows) {
  const Signature* row = rows.front();
  std::optional<Type> first;
  if (rows.size() > 1 && !expr.args.empty()) {
    first = infer(*expr.args.front().value);
    if (first->is_error()) return kError;
    for (const Signature* candidate : rows) {
      if (accepts(*candidate, *first)) {
        row = candidate;
        break;
      }
    }
  }
  expr.referent = ast::Referent::builtin;
  expr.target = static_cast<std::uint32_t>(row->id);
  if (auto* callee = llvm::dyn_cast<ast::NameExpr>(expr.callee)) callee->target = expr.target;
  if (row->id == Builtin::left && body_.sort != BodySort::steps) {
    sink_.report(Code::misplaced_call, expr.callee->range,
                 "`left` counts operations of a cursor, and is legal only in steps");
    return kError;
  }

  std::vector<ParamView> views;
  for (const BuiltinParam& param : row->params)
    views.push_back({param.name, param.type, param.optional, {}});
  std::vector<Type> types;
  const bool matched = match(expr, {row->name, {}, views, row}, first, types);
  if (row->result.kind != TypeKind::number && row->result.kind != TypeKind::any) return row->result;

  // The result follows the arguments.
  if (!matched) return kError;
  Type common{TypeKind::any};
  const bool is_number = row->result.kind == TypeKind::number;
  for (Type type : types) {
    if (type.is_error()) return kError;
    const Type element = is_number && type.kind == TypeKind::axis ? kInt : type.element();
    const std::optional<Type> wider = common_type(common, element);
    if (!wider) {
      sink_.report(Code::values_differ, expr.range, "`{}` does not take {} together with {}",
                   row->name, with_article(common), with_article(element));
      return kError;
    }
    common = *wider;
  }
  // Without numbers: `sum([])`.
  if (is_number && common.kind == TypeKind::any) common = kInt;
  return {common.kind, row->result.list};
}

Type Analyser::order_operation(ast::OpExpr& op, const Place& place) {
  op.type = Type{TypeKind::op}.bits();
  const Type type = op.operand != nullptr ? selector(*op.operand) : kSelector;
  if (type.is_error()) return kError;
  if (type != kSelector) {
    auto diagnostic = sink_.report(
        type == kCursor ? Code::cursor_is_no_value : Code::not_a_selector, op.operand->range,
        "this is {}; {} takes operations", with_article(type), place.text());
    diagnostic.hint("name them by coordinates: `{} stage[0]`, `{} stage[0] mb[1]`",
                    pass_name(op.pass), pass_name(op.pass));
    return kError;
  }
  const bool fills = place.owner == signature(Builtin::fill).name;
  const bool prefers = place.owner == signature(Builtin::greedy).name;
  if ((fills && (op.pass != Pass::BW || op.operand != nullptr))) {
    sink_.report(Code::type_mismatch, op.range, "{} takes `BW` alone", place.text())
        .hint("only weight gradients are pending: write `.fill(BW)`");
    return kError;
  }
  if (prefers && (op.pass == Pass::R || op.operand != nullptr)) {
    sink_.report(Code::type_mismatch, op.range, "{} takes `F`, `B` or `BW` alone", place.text())
        .hint("it says which pass goes first: `greedy(prefer: B)`");
    return kError;
  }
  return Type{TypeKind::op};
}

Type Analyser::argument(const ast::Arg& arg, Type expected, const Place& place,
                        std::optional<Type> known) {
  if (expected.is(TypeKind::op)) {
    auto* op = llvm::dyn_cast<ast::OpExpr>(arg.value);
    if (op == nullptr) {
      if (!llvm::isa<ast::ErrorExpr>(arg.value)) {
        auto diagnostic = sink_.report(Code::type_mismatch, arg.value->range,
                                       "{} takes an operation", place.text());
        if (place.owner == signature(Builtin::greedy).name) {
          diagnostic.hint("write the pass that goes first: `prefer: B`");
        } else {
          diagnostic.hint("write the pass too: `{}(F {})`", place.owner,
                          ast::source_text(*arg.value));
        }
      }
      return kError;
    }
    if (place.owner != signature(Builtin::left).name) return order_operation(*op, place);
    operation(*op, true);
    const bool whole_queue = op->operand == nullptr && op->pass == Pass::BW;
    if (op->operand != nullptr && !type_of(*op->operand).is_error() &&
        type_of(*op->operand) != kCursor) {
      sink_.report(Code::type_mismatch, op->operand->range,
                   "`left` counts the rest of a cursor, this is {}",
                   with_article(type_of(*op->operand)));
    } else if (op->pass == Pass::BI || op->pass == Pass::R) {
      sink_.report(Code::type_mismatch, op->pass_range, "`left` counts `F`, `B` or `BW`")
          .hint("{}",
                op->pass == Pass::R
                    ? "`R` takes nothing from a cursor: it recomputes the forward of the next `B`"
                    : "`B` and `BI` take from one sequence: write `left(B ...)`");
    }
    return whole_queue ? expected : type_of(*op);
  }
  if (expected == kCursor) {
    auto* name = llvm::dyn_cast<ast::NameExpr>(arg.value);
    const Type type = name != nullptr ? infer(*arg.value) : infer(*arg.value, kSelector);
    if (type == kCursor || type.is_error()) return type;
    auto diagnostic =
        sink_.report(Code::type_mismatch, arg.value->range, "this is {}; {} takes a `cursor`",
                     with_article(type), place.text());
    if (place.declared.valid())
      diagnostic.related(place.declared, "`{}` is declared here", place.name);
    if (type.kind == TypeKind::selector)
      diagnostic.hint("declare it first: `cursor a = {}`", ast::source_text(*arg.value));
    return kError;
  }
  if (expected.is(TypeKind::dimension) && !llvm::isa<ast::NameExpr>(arg.value)) {
    if (!llvm::isa<ast::ErrorExpr>(arg.value)) {
      sink_.report(Code::type_mismatch, arg.value->range, "{} takes the name of a dimension",
                   place.text());
    }
    return kError;
  }
  const Type type = known ? *known : infer(*arg.value, expected);
  if (report_mismatch(*arg.value, type, expected, place)) return kError;
  return type;
}

}  // namespace piper::sema
