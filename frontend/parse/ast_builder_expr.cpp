// Expressions.

#include <charconv>
#include <cmath>

#include "frontend/parse/ast_builder.h"

namespace piper::parse {

using namespace ast;
using Grammar = AstBuilder::Grammar;
using antlr4::tree::TerminalNode;

namespace {

std::optional<BinaryOp> binary_op(std::size_t type) {
  switch (type) {
    case Grammar::STAR: return BinaryOp::multiply;
    case Grammar::SLASH: return BinaryOp::divide;
    case Grammar::PERCENT: return BinaryOp::remainder;
    case Grammar::CONTRACT: return BinaryOp::contract;
    case Grammar::PLUS: return BinaryOp::add;
    case Grammar::MINUS: return BinaryOp::subtract;
    case Grammar::RANGE: return BinaryOp::range;
    case Grammar::BY: return BinaryOp::by;
    case Grammar::EQUAL: return BinaryOp::equal;
    case Grammar::NOT_EQUAL: return BinaryOp::not_equal;
    case Grammar::LESS: return BinaryOp::less;
    case Grammar::LESS_EQUAL: return BinaryOp::less_equal;
    case Grammar::GREATER: return BinaryOp::greater;
    case Grammar::GREATER_EQUAL: return BinaryOp::greater_equal;
    case Grammar::AND: return BinaryOp::logical_and;
    case Grammar::OR: return BinaryOp::logical_or;
    default: return std::nullopt;
  }
}

}  // namespace

Expr* AstBuilder::expr(Grammar::ExprContext* context, SourceRange where) {
  if (context == nullptr) return error(where);
  SourceRange own = range(context), end = behind(context);
  if (auto* inner = dynamic_cast<Grammar::PrimaryExprContext*>(context))
    return primary(inner->primary(), own);
  if (auto* unary = dynamic_cast<Grammar::UnaryExprContext*>(context)) {
    auto* node = module_.make<UnaryExpr>(own);
    node->op = unary->NOT() != nullptr ? UnaryOp::logical_not : UnaryOp::negate;
    node->operand = expr(unary->expr(), end);
    return node;
  }
  if (auto* binary = dynamic_cast<Grammar::BinaryExprContext*>(context)) {
    antlr4::Token* sign = first_token(binary);
    std::optional<BinaryOp> op = sign != nullptr ? binary_op(sign->getType()) : std::nullopt;
    if (!op) return expr(binary->expr(0), own);  // the operator itself did not parse
    Expr* left = expr(binary->expr(0), own);
    Expr* right = expr(binary->expr(1), end);
    auto* node = module_.make<BinaryExpr>(cover(left->range, cover(range(sign), right->range)));
    node->op = *op;
    node->op_range = range(sign);
    node->left = left;
    node->right = right;
    return node;
  }
  if (auto* conditional = dynamic_cast<Grammar::ConditionalExprContext*>(context)) {
    auto* node = module_.make<ConditionalExpr>(own);
    node->condition = expr(conditional->expr(0), end);
    node->then_value = expr(conditional->expr(1), end);
    node->else_value = expr(conditional->expr(2), end);
    return node;
  }
  return error(own);
}

Expr* AstBuilder::primary(Grammar::PrimaryContext* context, SourceRange where) {
  if (context == nullptr) return error(where);
  Expr* head = atom(context->atom(), range(context));
  for (Grammar::TrailerContext* part : context->trailer()) head = trailer(part, head);
  if (context->coordinate().empty()) return head;
  std::vector<Coordinate> coordinates;
  for (Grammar::CoordinateContext* part : context->coordinate()) {
    coordinates.push_back(
        {identifier(part->name(), behind(part)), elems(part->elems()), range(part)});
  }
  auto* node = module_.make<SelectorExpr>(cover(head->range, coordinates.back().range));
  node->head = head;
  node->coordinates = module_.copy(coordinates);
  return node;
}

Expr* AstBuilder::trailer(Grammar::TrailerContext* context, Expr* base) {
  SourceRange whole = cover(base->range, range(context));
  if (auto* index = dynamic_cast<Grammar::IndexTrailerContext*>(context)) {
    auto* node = module_.make<IndexExpr>(whole);
    node->base = base;
    node->indices = elems(index->elems());
    return node;
  }
  if (auto* field = dynamic_cast<Grammar::FieldTrailerContext*>(context)) {
    auto* node = module_.make<FieldExpr>(whole);
    node->base = base;
    node->field = identifier(field->name(), behind(field));
    return node;
  }
  if (auto* call = dynamic_cast<Grammar::CallTrailerContext*>(context)) {
    auto* node = module_.make<CallExpr>(whole);
    node->callee = base;
    std::vector<Arg> args;
    for (Grammar::ArgContext* part : call->arg()) args.push_back(arg(part));
    node->args = module_.copy(args);
    return node;
  }
  return base;
}

Arg AstBuilder::arg(Grammar::ArgContext* context) {
  SourceRange where = range(context), end = behind(context);
  Arg result{{}, nullptr, where};
  if (context->op() != nullptr) {
    result.value = op(context->op());
    if (result.value == nullptr) result.value = error(where);
    return result;
  }
  if (context->AT() != nullptr) {  // a keyword, and the coordinate of a device
    result.name = {"at", range(context->AT()->getSymbol())};
  } else {
    Expr* first = expr(context->expr(), where);
    if (context->COLON() == nullptr) {
      result.value = first;
      return result;
    }
    result.name.range = first->range;
    if (auto* word = llvm::dyn_cast<NameExpr>(first)) {
      result.name.name = word->name;
    } else if (!llvm::isa<ErrorExpr>(first)) {
      sink_.report(Code::unexpected_token, first->range, "only a name can stand left of `:`");
    }
  }
  Grammar::ArgValueContext* value = context->argValue();
  if (value != nullptr && value->op() != nullptr) result.value = op(value->op());
  if (result.value == nullptr) result.value = expr(value != nullptr ? value->expr() : nullptr, end);
  return result;
}

OpExpr* AstBuilder::op(Grammar::OpContext* context) {
  if (context == nullptr || context->PASS() == nullptr ||
      context->PASS()->getSymbol()->getTokenIndex() == INVALID_INDEX) {
    return nullptr;
  }
  auto* node = module_.make<OpExpr>(range(context));
  const antlr4::Token* pass = context->PASS()->getSymbol();
  node->pass = parse_pass(text(pass)).value_or(Pass::F);
  node->pass_range = range(pass);
  if (context->primary() != nullptr) node->operand = primary(context->primary(), behind(context));
  return node;
}

ExprList AstBuilder::elems(Grammar::ElemsContext* context) {
  std::vector<Expr*> list;
  if (context != nullptr) {
    for (Grammar::ExprContext* element : context->expr())
      list.push_back(expr(element, range(element)));
  }
  return module_.copy(list);
}

Expr* AstBuilder::atom(Grammar::AtomContext* context, SourceRange where) {
  if (context == nullptr) return error(where);
  if (auto* paren = dynamic_cast<Grammar::ParenAtomContext*>(context)) {
    Expr* inner = expr(paren->expr(), range(paren));
    inner->range = range(paren);  // so that the ranges of parent nodes cover the parentheses
    return inner;
  }
  if (auto* list = dynamic_cast<Grammar::ListAtomContext*>(context)) {
    if (list->FOR() != nullptr) {
      auto* node = module_.make<ComprehensionExpr>(range(list));
      node->bindings = bindings(list->each());
      node->elements = elems(list->elems());
      return node;
    }
    auto* node = module_.make<ListExpr>(range(list));
    node->elements = elems(list->elems());
    return node;
  }
  const antlr4::Token* word = first_token(context);
  if (word == nullptr || word->getTokenIndex() == INVALID_INDEX) return error(range(context));
  SourceRange own = range(word);
  switch (word->getType()) {
    case Grammar::NAME: {
      auto* node = module_.make<NameExpr>(own);
      node->name = module_.copy(text(word));
      return node;
    }
    case Grammar::MODEL: return module_.make<ModelExpr>(own);
    case Grammar::TRUE:
    case Grammar::FALSE: {
      auto* node = module_.make<BoolExpr>(own);
      node->value = word->getType() == Grammar::TRUE;
      return node;
    }
    case Grammar::STRING: {
      auto* node = module_.make<StringExpr>(own);
      std::string_view quoted = text(word).substr(1);
      const bool closed =
          quoted.ends_with('"') || (quoted.ends_with('\'') && text(word).starts_with('\''));
      node->value = module_.copy(closed ? quoted.substr(0, quoted.size() - 1) : quoted);
      return node;
    }
    case Grammar::NUMBER: return number(word);
    default: return error(own);
  }
}

Expr* AstBuilder::number(const antlr4::Token* token) {
  SourceRange own = range(token);
  std::string_view written = text(token);
  auto* node = module_.make<NumberExpr>(own);
  node->text = module_.copy(written);
  double real = 0;
  auto [end, status] = std::from_chars(written.data(), written.data() + written.size(), real);
  std::string_view suffix = written.substr(static_cast<std::size_t>(end - written.data()));
  node->unit = unit_of(suffix);
  // Reported.
  if (status == std::errc::invalid_argument || (!suffix.empty() && node->unit == Unit::none))
    return error(own);
  std::string_view digits = written.substr(0, written.size() - suffix.size());
  node->is_integer = digits.find_first_of(".eE") == std::string_view::npos;
  if (status == std::errc::result_out_of_range) {
    sink_.report(Code::malformed_number, own, "`{}` is out of the range of f64", written);
    return error(own);
  }
  node->real = real;
  if (const double bytes = real * unit_bytes(node->unit); bytes != std::floor(bytes)) {
    // The next unit below is fine enough for whatever was meant.
    const std::string_view below = node->unit == Unit::gib   ? unit_name(Unit::mib)
                                   : node->unit == Unit::mib ? unit_name(Unit::kib)
                                                             : "";
    sink_.report(Code::malformed_number, own, "`{}` is no whole number of bytes", written)
        .hint("write `{}{}`", std::llround(real * 1024), below);
    return error(own);
  }
  if (node->is_integer) {
    auto [last, error_code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), node->integer);
    if (error_code != std::errc()) {
      sink_.report(Code::malformed_number, own, "`{}` is too large: integers have 63 bits", written)
          .hint("write `{}.0` if a float is meant", digits);
      return error(own);
    }
  }
  return node;
}

}  // namespace piper::parse
