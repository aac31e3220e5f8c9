// Selectors: targets, operands of passes, cursors.

#include "frontend/sema/analyser.h"

namespace piper::sema {

Type Analyser::selector_name(ast::NameExpr& expr) {
  Local* local = find_local(expr.name);
  if (local == nullptr) {
    expr.referent = ast::Referent::label;
    expr.target = label(expr.name);
    return kSelector;
  }
  local->used = true;
  expr.referent = ast::Referent::local;
  expr.target = local->slot;
  if (local->type.kind == TypeKind::selector || local->type == kCursor || local->type.is_error())
    return local->type;
  auto diagnostic =
      sink_.report(Code::not_a_selector, expr.range, "`{}` is {} here, not a selector", expr.name,
                   with_article(local->type));
  diagnostic.related(local->range, "`{}` is declared here", expr.name);
  if (local->type == kAxis) {
    diagnostic.hint(
        "axes name devices, selectors work: `place stage[0] on {}[0]`, `replicate model over {}`",
        expr.name, expr.name);
  } else {
    diagnostic.hint("a local hides the regions and dimensions of its name: rename it");
  }
  return kError;
}

bool Analyser::starts_with_label(const ast::Expr& expr) {
  const ast::Expr* base = &expr;
  while (true) {
    if (const auto* index = llvm::dyn_cast<ast::IndexExpr>(base)) {
      base = index->base;
    } else if (const auto* field = llvm::dyn_cast<ast::FieldExpr>(base)) {
      base = field->base;
    } else {
      break;
    }
  }
  if (llvm::isa<ast::ModelExpr>(base)) return true;
  const auto* name = llvm::dyn_cast<ast::NameExpr>(base);
  if (name == nullptr || find_local(name->name) != nullptr) return false;
  if (!find_builtins(name->name, false).empty()) return false;
  const auto& own = scopes_[body_.module.index()];
  const auto blocks = [](const Declaration& declaration) {
    return declaration.kind != DeclKind::function;
  };
  if (const auto found = own.find(name->name); found != own.end() && blocks(found->second))
    return false;
  for (const ModuleId used : program_.modules[body_.module.index()]->uses) {
    const auto found = scopes_[used.index()].find(name->name);
    if (found != scopes_[used.index()].end() && blocks(found->second)) return false;
  }
  return true;
}

Type Analyser::selector(ast::Expr& expr) {
  Type type = kError;
  switch (expr.kind) {
    case ast::ExprKind::error: break;
    case ast::ExprKind::name: type = selector_name(llvm::cast<ast::NameExpr>(expr)); break;
    case ast::ExprKind::model: type = kSelector; break;
    case ast::ExprKind::index: {
      auto& node = llvm::cast<ast::IndexExpr>(expr);
      const Type base = selector(*node.base);
      bool has_list = false;
      indices(node.indices, &has_list);
      // A list of selectors is indexed like any list.
      type = base == kSelectors && has_list ? kSelectors : base.is_error() ? kError : kSelector;
      if (base == kCursor) {
        sink_.report(Code::cursor_is_no_value, node.base->range, "a cursor takes no index")
            .hint("`F a` takes the next operation of `a`");
        type = kError;
      }
      break;
    }
    case ast::ExprKind::field: {
      auto& node = llvm::cast<ast::FieldExpr>(expr);
      type = selector(*node.base);
      bind_label(node.field);
      if (!type.is_error() && type != kSelector) {
        sink_.report(Code::not_a_selector, node.base->range, "this is {}: it has no parts",
                     with_article(type));
        type = kError;
      }
      break;
    }
    case ast::ExprKind::selector: {
      auto& node = llvm::cast<ast::SelectorExpr>(expr);
      type = selector(*node.head);
      if (!type.is_error() && type != kSelector) {
        sink_.report(Code::not_a_selector, node.head->range, "this is {}: it takes no coordinates",
                     with_article(type));
        type = kError;
      }
      for (const ast::Coordinate& coordinate : node.coordinates) {
        bind_label(coordinate.dimension);
        indices(coordinate.indices, nullptr);
      }
      break;
    }
    case ast::ExprKind::list:
    case ast::ExprKind::comprehension:
    case ast::ExprKind::conditional:
    case ast::ExprKind::call: type = infer_node(expr, kSelector); break;
    default:
      type = infer_node(expr, {});
      if (!type.is_error()) {
        sink_
            .report(Code::not_a_selector, expr.range, "this is {}, not a selector",
                    with_article(type))
            .hint("a selector names work: `model`, `stage[0]`, `stage[0] mb[1]`");
        type = kError;
      }
  }
  type_unknown_ = type_unknown_ || type.is_error();
  expr.type = type.bits();
  return type;
}

void Analyser::target(const ast::Target& target) {
  const Type type = selector(*target.selector);
  if (type.is_error() || type == kSelector) return;
  if (type == kCursor) {
    sink_.report(Code::cursor_is_no_value, target.selector->range,
                 "a cursor may appear only in steps");
  } else {
    sink_
        .report(Code::not_a_selector, target.selector->range, "this is {}, not a selector",
                with_article(type))
        .hint("for a list write a loop: `for s in ... { }`");
  }
}

void Analyser::operation(ast::OpExpr& op, bool counted) {
  op.type = Type{TypeKind::op}.bits();
  if (op.operand == nullptr) {
    if (op.pass == Pass::BW) return;
    auto diagnostic = sink_.report(Code::missing_operand, op.pass_range, "`{}` has no operand",
                                   pass_name(op.pass));
    if (counted) {
      diagnostic.hint(
          "write `left({} a)` with a cursor; only `left(BW)` counts those of all cursors",
          pass_name(op.pass));
      return;
    }
    diagnostic.hint(
        "write `{} a` with a cursor, or a selector such as `{} stage[0] mb[0]`; only `BW` may have no operand",
        pass_name(op.pass), pass_name(op.pass));
    return;
  }
  const Type type = selector(*op.operand);
  if (type.is_error() || type == kSelector || type == kCursor) return;
  sink_
      .report(Code::not_a_selector, op.operand->range, "this is {}; `{}` takes one operation",
              with_article(type), pass_name(op.pass))
      .hint("`cursor a = ...` walks through a list, then `{} a` takes the next of it",
            pass_name(op.pass));
}

}  // namespace piper::sema
