// Expressions and conversions.

#include <cmath>
#include <utility>

#include "frontend/sema/analyser.h"

namespace piper::sema {

bool converts(Type from, Type to) {
  if (from.is_error() || to.is_error() || from == to) return true;
  if (to.kind == TypeKind::any) return from.list == to.list || !to.list;
  if (from.list != to.list) return false;
  if (from.kind == TypeKind::any) return true;
  switch (to.kind) {
    case TypeKind::integer: return from.kind == TypeKind::axis;
    case TypeKind::floating: return from.kind == TypeKind::integer || from.kind == TypeKind::axis;
    case TypeKind::bytes: return from.kind == TypeKind::integer || from.kind == TypeKind::axis;
    case TypeKind::devices: return from.kind == TypeKind::axis;
    case TypeKind::rate:
      return from.kind == TypeKind::integer || from.kind == TypeKind::axis ||
             from.kind == TypeKind::floating;
    case TypeKind::number: return from.element().is_number();
    case TypeKind::tensor:
    case TypeKind::tensor_f32:
    case TypeKind::tensor_bf16:
    case TypeKind::tensor_f64:
      // The element type of `tensor` is the train's: known when the model is elaborated.
      return from.element().is_tensor() && from.kind != TypeKind::tensor_i64;
    default: return false;
  }
}

std::optional<Type> common_type(Type a, Type b) {
  if (a.is_error()) return b;
  if (b.is_error() || a == b) return a;
  if (a.list != b.list) return std::nullopt;
  if (a.kind == TypeKind::any) return b;
  if (b.kind == TypeKind::any) return a;
  if (a.element().is_number() && b.element().is_number()) {
    const auto either = [&](TypeKind kind) { return a.kind == kind || b.kind == kind; };
    if (either(TypeKind::bytes)) {
      if (either(TypeKind::floating)) return std::nullopt;
      return Type{TypeKind::bytes, a.list};
    }
    return Type{either(TypeKind::floating) ? TypeKind::floating : TypeKind::integer, a.list};
  }
  if (converts(a, {TypeKind::tensor, a.list}) && converts(b, {TypeKind::tensor, b.list}))
    return Type{TypeKind::tensor, a.list};
  if (converts(a, b)) return b;
  if (converts(b, a)) return a;
  return std::nullopt;
}

std::string with_article(Type type) {
  const std::string_view name = type_name(type);
  const bool vowel = std::string_view("aeio").find(name.front()) != std::string_view::npos ||
                     name.starts_with("f32") || name.starts_with("f64");
  const bool plural = type == kDevices || type == kBytes || type == Type{TypeKind::steps} ||
                      type.is(TypeKind::data) || type.is(TypeKind::weights);
  if (type == kNone) return "nothing";
  return (plural ? "`" : vowel ? "an `" : "a `") + std::string(name) + "`";
}

std::string_view words_of(Type type) {
  if (type.list) return {};
  switch (type.kind) {
    case TypeKind::sampling: return "write `epoch` or `replacement`";
    case TypeKind::objective: return "write `span` or `makespan`";
    case TypeKind::token_type: return "write `u8`, `u16`, `u32` or `i32`";
    case TypeKind::decay:
      return "write `decay: matrices` for the weights that a product or a lookup reads, or `decay: all`";
    case TypeKind::fallback:
      return "write `missing: init`, or leave it out: then no parameter may be missing";
    default: return {};
  }
}

std::string Place::text() const {
  if (name.empty()) return std::string(what);
  return "`" + std::string(name) + "` of `" + std::string(owner) + "`";
}

Type Analyser::infer(ast::Expr& expr, Type hint) {
  if (hint.kind == TypeKind::selector) return selector(expr);
  if (hint.kind == TypeKind::any) hint = kError;  // says nothing: `len([stage[0], stage[1]])`
  const Type type = infer_node(expr, hint);
  type_unknown_ = type_unknown_ || type.is_error();
  expr.type = type.bits();
  return type;
}

Type Analyser::infer_node(ast::Expr& expr, Type hint) {
  switch (expr.kind) {
    case ast::ExprKind::error: return kError;
    case ast::ExprKind::name: return name(llvm::cast<ast::NameExpr>(expr), hint);
    case ast::ExprKind::model: return kSelector;
    case ast::ExprKind::number: return number(llvm::cast<ast::NumberExpr>(expr));
    case ast::ExprKind::string: return kString;
    case ast::ExprKind::boolean: return kBool;
    case ast::ExprKind::list: return list(llvm::cast<ast::ListExpr>(expr).elements, hint);
    case ast::ExprKind::comprehension:
      return comprehension(llvm::cast<ast::ComprehensionExpr>(expr), hint);
    case ast::ExprKind::unary: return unary(llvm::cast<ast::UnaryExpr>(expr));
    case ast::ExprKind::binary: return binary(llvm::cast<ast::BinaryExpr>(expr));
    case ast::ExprKind::conditional:
      return conditional(llvm::cast<ast::ConditionalExpr>(expr), hint);
    case ast::ExprKind::index: return index(llvm::cast<ast::IndexExpr>(expr), hint);
    case ast::ExprKind::field: {
      auto& node = llvm::cast<ast::FieldExpr>(expr);
      const bool label =
          hint.is_error() && body_.sort != BodySort::model && starts_with_label(expr);
      if (!label || node.field.name == "order") {  // no part of work has that name
        if (const FunctionId schedule = named_schedule(*node.base); schedule.valid())
          return part_of_schedule(node, schedule);
      }
      if (label) return selector(expr);
      const Type base = infer(*node.base);
      if (base == kSelector) return selector(expr);
      if (base == kOrder && report_unavailable(node.field.name, node.field.range)) return kError;
      if (!base.is_error()) {
        auto diagnostic = sink_.report(Code::unknown_field, node.field.range, "{} has no part `{}`",
                                       with_article(base), node.field.name);
        if (base == kOrder && !find_builtins(node.field.name, true).empty()) {
          diagnostic.hint("it is a method, and is called: `.{}(...)`", node.field.name);
        } else {
          diagnostic.hint(
              "only selectors have parts, such as `model.reduce`, and orders methods, such as `.trim(mb: m)`");
        }
      }
      return kError;
    }
    case ast::ExprKind::call: return call(llvm::cast<ast::CallExpr>(expr), false);
    case ast::ExprKind::selector: return selector(expr);
    case ast::ExprKind::op: {
      auto& node = llvm::cast<ast::OpExpr>(expr);
      sink_.report(Code::operation_is_no_value, expr.range, "an operation is no value")
          .hint("`left({} a)` counts the rest of a cursor", pass_name(node.pass));
      return kError;
    }
  }
  return kError;
}

Type Analyser::number(const ast::NumberExpr& expr) {
  switch (expr.unit) {
    case ast::Unit::none: return expr.is_integer ? kInt : kFloat;
    case ast::Unit::kib:
    case ast::Unit::mib:
    case ast::Unit::gib: return kBytes;
    default: return kFloat;  // seconds
  }
}

Type Analyser::list(ast::ExprList elements, Type hint) {
  Type common{TypeKind::any};
  const ast::Expr* first = nullptr;
  for (ast::Expr* element : elements) {
    const Type type = infer(*element, hint.element()).element();
    if (type.is_error()) {
      common = kError;
      continue;
    }
    if (!storable(*element, type)) {
      common = kError;
      continue;
    }
    const std::optional<Type> wider =
        common.is_error() ? std::optional<Type>(kError) : common_type(common, type);
    if (!wider) {
      sink_
          .report(Code::values_differ, element->range, "this is {} in a list of `{}`",
                  with_article(type), type_name(common))
          .related(first->range, "the list begins with {}",
                   with_article(type_of(*first).element()));
      common = kError;
      continue;
    }
    common = *wider;
    if (first == nullptr) first = element;
  }
  if (common.is_error()) return kError;
  return {common.kind, true};
}

Type Analyser::comprehension(ast::ComprehensionExpr& expr, Type hint) {
  const std::size_t before = locals_.size();
  bindings(expr.bindings);
  const Type type = list(expr.elements, hint);
  pop_locals(before);
  return type;
}

void Analyser::bindings(std::span<const ast::Binding> list) {
  for (const ast::Binding& binding : list) {
    const Type type = infer(*binding.values);
    Type element = type.element();
    if (!type.is_error() && !type.list) {
      auto diagnostic = sink_.report(Code::not_iterable, binding.values->range,
                                     "this is {}; `in` takes a list", with_article(type));
      if (converts(type, kInt))
        diagnostic.hint("to count write `0..{}`", ast::source_text(*binding.values));
      element = converts(type, kInt) ? kInt : kError;
    }
    declare_local(binding.name, element, LocalKind::loop);
  }
}

bool Analyser::storable(const ast::Expr& value, Type type) {
  switch (type.kind) {
    case TypeKind::cursor:
      sink_.report(Code::cursor_is_no_value, value.range, "a cursor is not stored")
          .hint(
              "a cursor stays where it is declared; pass it to a function that gives `steps` with a parameter of type `cursor`");
      return false;
    case TypeKind::measure:
      sink_
          .report(Code::misplaced_measure, value.range,
                  "a measure is known after planning, and is no value")
          .hint("compare it in a `require`, such as `require peak_memory < 8GiB`");
      return false;
    case TypeKind::none:
    case TypeKind::steps:
      sink_.report(Code::type_mismatch, value.range, "this gives {}, and here a value is needed",
                   with_article(type));
      return false;
    default: return true;
  }
}

Type Analyser::unary(ast::UnaryExpr& expr) {
  if (expr.op == ast::UnaryOp::logical_not) {
    expect(*expr.operand, kBool, {.what = "`not`"});
    return kBool;
  }
  const Type type = infer(*expr.operand, kFloat);
  if (type.is_error()) return kError;
  if (type == kAxis) return kInt;
  if (type.is_number() || (type.is_tensor() && type.kind != TypeKind::tensor_i64)) return type;
  sink_.report(Code::operands_do_not_fit, expr.range, "`-` takes a number or a tensor, this is {}",
               with_article(type));
  return kError;
}

namespace {

/// The type of `a op b` for numbers and tensors, if there is one.
std::optional<Type> arithmetic_type(ast::BinaryOp op, Type a, Type b) {
  if (a == kAxis) a = kInt;
  if (b == kAxis) b = kInt;
  const auto real_tensor = [](Type type) {
    return type.is_tensor() && type.kind != TypeKind::tensor_i64;
  };
  const auto scalar = [](Type type) { return type.is_number() && type != kBytes; };
  if (op == ast::BinaryOp::contract) {
    return real_tensor(a) && real_tensor(b) ? common_type(a, b) : std::nullopt;
  }
  if (op != ast::BinaryOp::remainder) {
    if (real_tensor(a) && real_tensor(b)) return common_type(a, b);
    if (real_tensor(a) && scalar(b)) return a;
    if (scalar(a) && real_tensor(b)) return b;
  }
  if (!a.is_number() || !b.is_number()) return std::nullopt;
  if (a == kBytes || b == kBytes) {
    switch (op) {
      case ast::BinaryOp::add:
      case ast::BinaryOp::subtract:
      case ast::BinaryOp::remainder: return common_type(a, b);
      case ast::BinaryOp::multiply: return a == b ? std::nullopt : std::optional<Type>(kBytes);
      default:
        if (a == b) return kFloat;
        return a == kBytes ? std::optional<Type>(kBytes) : std::nullopt;
    }
  }
  return common_type(a, b);
}

}  // namespace

Type Analyser::binary(ast::BinaryExpr& expr) {
  switch (expr.op) {
    case ast::BinaryOp::range:
      expect(*expr.left, kInt, {.what = "the start of a range"});
      expect(*expr.right, kInt, {.what = "the end of a range"});
      return kInts;
    case ast::BinaryOp::by:
      expect(*expr.left, kInts, {.what = "`by`"});
      expect(*expr.right, kInt, {.what = "the step of `by`"});
      return kInts;
    case ast::BinaryOp::logical_and:
    case ast::BinaryOp::logical_or: {
      const Place place{.what = expr.op == ast::BinaryOp::logical_and ? "`and`" : "`or`"};
      expect(*expr.left, kBool, place);
      expect(*expr.right, kBool, place);
      return kBool;
    }
    case ast::BinaryOp::equal:
    case ast::BinaryOp::not_equal:
    case ast::BinaryOp::less:
    case ast::BinaryOp::less_equal:
    case ast::BinaryOp::greater:
    case ast::BinaryOp::greater_equal: return comparison(expr);
    default: break;
  }
  const Type a = infer(*expr.left, kFloat);
  const Type b = infer(*expr.right, kFloat);
  if (a.is_error() || b.is_error()) return kError;
  if (const std::optional<Type> type = arithmetic_type(expr.op, a, b)) return *type;
  auto diagnostic =
      sink_.report(Code::operands_do_not_fit, expr.op_range, "`{}` does not take {} and {}",
                   ast::op_text(expr.op), with_article(a), with_article(b));
  if (expr.op == ast::BinaryOp::add && (a.list || b.list)) {
    diagnostic.hint("a list inside a list is spliced: write `[{}, {}]`",
                    ast::source_text(*expr.left), ast::source_text(*expr.right));
  } else if (expr.op == ast::BinaryOp::contract) {
    diagnostic.hint("`@` multiplies two tensors; for numbers write `*`");
  } else if (a.kind == TypeKind::tensor_i64 || b.kind == TypeKind::tensor_i64) {
    diagnostic.hint(
        "an integer tensor holds indices: `lookup(table, indices)`, `cross_entropy(logits, targets)`");
  }
  return kError;
}

Type Analyser::comparison(ast::BinaryExpr& expr) {
  const bool equality = expr.op == ast::BinaryOp::equal || expr.op == ast::BinaryOp::not_equal;
  const Type hint = equality ? kBool : kFloat;
  const Type a = infer(*expr.left, hint);
  const Type b = infer(*expr.right, hint);
  if (a.is_error() || b.is_error()) return kBool;
  const auto measure = [&](const ast::Expr& side, Type type) {
    if (!type.is(TypeKind::measure)) return false;
    if (std::exchange(body_.measure_reported, true)) return true;  // one condition, one mistake
    sink_
        .report(
            Code::misplaced_measure, side.range,
            "a measure is known after planning: it is compared with a value, in a `require` of its own")
        .hint(
            "write `require peak_memory < 8GiB` in a schedule or a train; `and` joins two such conditions");
    return true;
  };
  if (measure(*expr.left, a) || measure(*expr.right, b)) return kBool;
  const bool numbers = a.is_number() && b.is_number() && common_type(a, b).has_value();
  const bool same = equality && ((a == kString && b == kString) || (a == kBool && b == kBool));
  if (!numbers && !same) {
    sink_.report(Code::operands_do_not_fit, expr.op_range, "`{}` does not compare {} with {}",
                 ast::op_text(expr.op), with_article(a), with_article(b));
    return kError;
  }
  return kBool;
}

Type Analyser::conditional(ast::ConditionalExpr& expr, Type hint) {
  expect(*expr.condition, kBool, {.what = "the condition of `if`"});
  const Type a = infer(*expr.then_value, hint);
  const Type b = infer(*expr.else_value, hint);
  if (!a.is_error() && !storable(*expr.then_value, a)) return kError;
  if (!b.is_error() && !storable(*expr.else_value, b)) return kError;
  if (const std::optional<Type> type = common_type(a, b)) return *type;
  sink_.report(Code::values_differ, expr.else_value->range, "`else` gives {}", with_article(b))
      .related(expr.then_value->range, "`then` gives {}", with_article(a));
  return kError;
}

void Analyser::indices(ast::ExprList list, bool* has_list) {
  for (ast::Expr* index : list) {
    const Type type = infer(*index, kInt);
    if (type.list && has_list != nullptr) *has_list = true;
    if (converts(type, kInt) || converts(type, kInts)) continue;
    report_mismatch(*index, type, kInt, {.what = "an index"});
  }
}

Type Analyser::index(ast::IndexExpr& expr, Type hint) {
  if (hint.is_error() && body_.sort != BodySort::model && starts_with_label(expr))
    return selector(expr);
  const Type base = infer(*expr.base);
  if (base.kind == TypeKind::selector || base == kCursor) return selector(expr);
  bool has_list = false;
  indices(expr.indices, &has_list);
  if (base.is_error()) return kError;
  if (base != kAxis && !base.list) {
    auto diagnostic =
        sink_.report(Code::not_indexable, expr.range, "{} takes no index", with_article(base));
    if (base.is_tensor())
      diagnostic.hint("tensors are used as a whole: operations go along dimensions by name");
    return kError;
  }
  if (expr.indices.size() > 1 && !(base == kAxis && hint == kCoordinates)) {
    auto diagnostic = sink_.report(Code::not_indexable, expr.indices[1]->range,
                                   "{} takes one index", with_article(base));
    if (base == kAxis) {
      diagnostic.hint(
          "a device set is at one coordinate: write a line for each, or `for i in [...] { ... {}[i] }`",
          ast::source_text(*expr.base));
    } else {
      diagnostic.hint("a list of indices picks several elements: `{}[[...]]`",
                      ast::source_text(*expr.base));
    }
    return kError;
  }
  if (base == kAxis) return kDevices;
  return {base.kind, has_list};
}

Type Analyser::expect(ast::Expr& expr, Type expected, const Place& place) {
  const Type actual = infer(expr, expected);
  if (!report_mismatch(expr, actual, expected, place)) return actual;
  return kError;
}

bool Analyser::report_mismatch(const ast::Expr& expr, Type actual, Type expected,
                               const Place& place) {
  if (converts(actual, expected)) return false;
  if (actual == kCursor || actual == kNone || actual.is(TypeKind::steps) ||
      actual.is(TypeKind::measure)) {
    return !storable(expr, actual);
  }
  auto diagnostic = sink_.report(Code::type_mismatch, expr.range, "this is {}; {} takes {}",
                                 with_article(actual), place.text(), with_article(expected));
  if (place.declared.valid())
    diagnostic.related(place.declared, "`{}` is declared here", place.name);
  const std::string text = ast::source_text(expr);
  const auto* number = llvm::dyn_cast<ast::NumberExpr>(&expr);
  if (expected == kInt && number != nullptr && number->unit == ast::Unit::none &&
      number->real == std::floor(number->real) && std::abs(number->real) < 1e15) {
    diagnostic.hint("write `{}`", std::llround(number->real));
  } else if (expected == kInt && actual == kFloat) {
    diagnostic.hint("`floor({})` and `round({})` give an `int`", text, text);
  } else if (expected == kBool && actual.is_number()) {
    diagnostic.hint("compare it: `{} != 0`", text);
  } else if (expected == kDevices && actual == kInt) {
    diagnostic.hint("the devices at a coordinate of an axis `p` are `p[{}]`", text);
  } else if (expected == kDevices && actual.list) {
    diagnostic.hint(
        "work is placed on one device set: write a line for each, as `for s in 0..2 { place stage[s] on p[s] }` does");
  } else if (expected == kAxis) {
    diagnostic.hint("pass an axis of the mesh, such as `pp` of `mesh cluster(pp: 4)`");
  } else if (expected.list && converts(actual, expected.element())) {
    diagnostic.hint("a list of one is `[{}]`", text);
  } else if (expected == kInts && actual == kInt) {
    diagnostic.hint("the indices below it are `0..{}`", text);
  } else if ((expected == kFloat || expected.is(TypeKind::rate)) && actual == kString) {
    diagnostic.hint("numbers are written without quotes");
  } else if (expected.is_tensor() && actual.kind == TypeKind::tensor_i64) {
    diagnostic.hint(
        "an integer tensor holds indices: `lookup(table, indices)`, `cross_entropy(logits, targets)`");
  } else if (expected.is(TypeKind::optimizer)) {
    diagnostic.hint("write `adamw(lr: 1e-3)` or `sgd(lr: 0.1)`");
  } else if (expected.is(TypeKind::data)) {
    diagnostic.hint("write `bytes(\"corpus.txt\", batch: 32, seq: 128)` or `synthetic(batch: 32)`");
  } else if (expected.is(TypeKind::every)) {
    diagnostic.hint("write `every({})`", actual == kInt ? text : "100");
  } else if (expected.is(TypeKind::weights)) {
    diagnostic.hint("write `weights({})`", actual == kString ? text : "\"model.safetensors\"");
  } else if (const std::string_view words = words_of(expected); !words.empty()) {
    diagnostic.hint("{}", words);
  }
  return true;
}

}  // namespace piper::sema
