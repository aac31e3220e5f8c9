// Selectors: `stage[c*p + r] mb[0..m]`, `block[4].moe`, `model.reduce`.

#include "frontend/lower/evaluate/evaluator.h"

namespace piper::lower {

using llvm::cast;
using llvm::dyn_cast;

bool is_written_selector(const ast::Expr& expr) {
  switch (expr.kind) {
    case ast::ExprKind::model:
    case ast::ExprKind::selector: return true;
    case ast::ExprKind::name: return cast<ast::NameExpr>(expr).referent == ast::Referent::label;
    case ast::ExprKind::index: {
      // An element of a list is held, a name with indices is written: `stage[0]`, even if a local
      // holds `stage`.
      const ast::Expr& base = *cast<ast::IndexExpr>(expr).base;
      return !sema::type_of(base).list &&
             (is_written_selector(base) || sema::type_of(base).is(sema::TypeKind::selector));
    }
    case ast::ExprKind::field: return true;
    default: return false;
  }
}

namespace {

std::optional<directive::CommClass> part_of(std::string_view name) {
  using directive::CommClass;
  for (const CommClass part : {CommClass::send, CommClass::recv, CommClass::gather,
                               CommClass::reduce, CommClass::enter, CommClass::leave}) {
    if (directive::part_name(part) == name) return part;
  }
  return std::nullopt;
}

}  // namespace

void Evaluator::append_indices(directive::Coordinate& coordinate,
                               std::span<ast::Expr* const> indices, Frame& frame) {
  coordinate.all = false;
  const auto append = [&](std::int64_t index, const ast::Expr& expr) {
    if (index < 0 || index > 0x7FFFFFFF) {
      fail(Code::negative_index, expr.range, frame, "`{}` has index `{}`; indices {}",
           context_->text(coordinate.name), index, index < 0 ? "count from 0" : "go to 2147483647");
      return;
    }
    coordinate.indices.push_back(static_cast<std::uint32_t>(index));
  };
  for (const ast::Expr* expr : indices) {
    const Value value = eval(*expr, frame);
    if (failed_) return;
    if (const Range* range = value.get<Range>()) {
      if (!step(expr->range, frame, length(value))) return;
      coordinate.indices.reserve(coordinate.indices.size() +
                                 static_cast<std::size_t>(range->size()));
      for (std::int64_t i = 0; i < range->size() && !failed_; ++i)
        append(range->begin + i * range->step, *expr);
    } else if (const Values* list = value.shared<Values>()) {
      for (const Value& element : *list) append(to_int(element), *expr);
    } else {
      append(to_int(value), *expr);
    }
  }
}

void Evaluator::append_value(directive::Selector& selector, const Value& value) {
  const directive::Selector* held = value.shared<directive::Selector>();
  if (!held) return;
  selector.coordinates.insert(selector.coordinates.end(), held->coordinates.begin(),
                              held->coordinates.end());
  if (held->pass) selector.pass = held->pass;
  if (held->part != directive::CommClass::none) selector.part = held->part;
}

void Evaluator::append_selector(directive::Selector& selector, const ast::Expr& expr,
                                Frame& frame) {
  if (failed_) return;
  switch (expr.kind) {
    case ast::ExprKind::model: return;
    case ast::ExprKind::name: {
      const auto& name = cast<ast::NameExpr>(expr);
      if (name.referent == ast::Referent::label) {
        directive::Coordinate coordinate;
        coordinate.name = Symbol(name.target);
        coordinate.loc = here(expr.range, frame);
        selector.coordinates.push_back(std::move(coordinate));
        return;
      }
      append_value(selector, eval(expr, frame));
      return;
    }
    case ast::ExprKind::index: {
      const auto& index = cast<ast::IndexExpr>(expr);
      if (sema::type_of(*index.base).list) {
        append_value(selector, eval_index(index, frame));
        return;
      }
      append_selector(selector, *index.base, frame);
      if (failed_) return;
      if (selector.coordinates.empty() || !selector.coordinates.back().all) {
        if (selector.coordinates.empty()) {
          fail(Code::selector_indexed_twice, expr.range, frame,
               "`{}` means all work, which has no index", ast::source_text(*index.base))
              .hint("write `{}`, or index a region in it: `stage[0]`",
                    ast::source_text(*index.base));
          return;
        }
        fail(Code::selector_indexed_twice, expr.range, frame, "`{}` has an index already",
             ast::source_text(*index.base))
            .hint("write all indices in one bracket: `stage[0, 1]`");
        return;
      }
      // From the name to the closing bracket, if the name is written here.
      directive::Coordinate& indexed = selector.coordinates.back();
      const SourceRange name = context_->locations.range(indexed.loc);
      const bool written = name.file == expr.range.file && name.begin >= expr.range.begin &&
                           name.end <= expr.range.end;
      indexed.loc =
          here(written ? SourceRange{name.file, name.begin, expr.range.end} : expr.range, frame);
      append_indices(indexed, index.indices, frame);
      return;
    }
    case ast::ExprKind::field: {
      const auto& field = cast<ast::FieldExpr>(expr);
      append_selector(selector, *field.base, frame);
      if (const auto part = part_of(field.field.name)) {
        selector.part = *part;
        return;
      }
      directive::Coordinate coordinate;
      coordinate.rest = field.field.name == "rest" &&
                        (selector.coordinates.empty() || !selector.coordinates.back().rest);
      if (coordinate.rest) {
        coordinate.name = selector.coordinates.empty() ? context_->symbol("model")
                                                       : selector.coordinates.back().name;
      } else {
        coordinate.name = context_->symbol(field.field.name);
      }
      coordinate.loc = here(field.field.range, frame);
      selector.coordinates.push_back(std::move(coordinate));
      return;
    }
    case ast::ExprKind::selector: {
      const auto& written = cast<ast::SelectorExpr>(expr);
      append_selector(selector, *written.head, frame);
      for (const ast::Coordinate& part : written.coordinates) {
        if (failed_) return;
        directive::Coordinate coordinate;
        coordinate.name = context_->symbol(part.dimension.name);
        coordinate.loc = here(part.range, frame);
        for (const directive::Coordinate& earlier : selector.coordinates) {
          if (earlier.name != coordinate.name || earlier.rest) continue;
          fail(Code::selector_indexed_twice, part.range, frame, "this selector says `{}` twice",
               part.dimension.name)
              .related(earlier.loc, "the first one is here")
              .hint("write all indices in one bracket: `{}[0, 1]`", part.dimension.name);
          return;
        }
        append_indices(coordinate, part.indices, frame);
        selector.coordinates.push_back(std::move(coordinate));
      }
      return;
    }
    default: {
      append_value(selector, eval(expr, frame));
      return;
    }
  }
}

directive::Selector Evaluator::eval_selector(const ast::Expr& expr, Frame& frame) {
  directive::Selector selector;
  selector.loc = here(expr.range, frame);
  append_selector(selector, expr, frame);
  return selector;
}

directive::Selector Evaluator::eval_target(const ast::Target& target, Frame& frame) {
  directive::Selector selector = eval_selector(*target.selector, frame);
  if (target.has_pass) selector.pass = target.pass;
  selector.loc = here(target.range, frame);
  return selector;
}

}  // namespace piper::lower
