// Expressions back to source form.

#include "frontend/ast/source_text.h"

namespace piper::ast {

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::none: return "";
    case Unit::kib: return "KiB";
    case Unit::mib: return "MiB";
    case Unit::gib: return "GiB";
    case Unit::ns: return "ns";
    case Unit::us: return "us";
    case Unit::ms: return "ms";
    case Unit::s: return "s";
  }
  return "";
}

Unit unit_of(std::string_view suffix) {
  for (Unit unit : {Unit::kib, Unit::mib, Unit::gib, Unit::ns, Unit::us, Unit::ms, Unit::s}) {
    if (suffix == unit_name(unit)) return unit;
  }
  return Unit::none;
}

double unit_bytes(Unit unit) {
  switch (unit) {
    case Unit::kib: return 0x1p10;
    case Unit::mib: return 0x1p20;
    case Unit::gib: return 0x1p30;
    default: return 0;
  }
}

std::string_view op_text(BinaryOp op) {
  switch (op) {
    case BinaryOp::multiply: return "*";
    case BinaryOp::divide: return "/";
    case BinaryOp::remainder: return "%";
    case BinaryOp::contract: return "@";
    case BinaryOp::add: return "+";
    case BinaryOp::subtract: return "-";
    case BinaryOp::range: return "..";
    case BinaryOp::by: return "by";
    case BinaryOp::equal: return "==";
    case BinaryOp::not_equal: return "!=";
    case BinaryOp::less: return "<";
    case BinaryOp::less_equal: return "<=";
    case BinaryOp::greater: return ">";
    case BinaryOp::greater_equal: return ">=";
    case BinaryOp::logical_and: return "and";
    case BinaryOp::logical_or: return "or";
  }
  return "";
}

std::string_view op_text(UnaryOp op) { return op == UnaryOp::negate ? "-" : "not"; }

std::string_view keyword_of(StmtKind kind) {
  switch (kind) {
    case StmtKind::let: return "let";
    case StmtKind::var: return "var";
    case StmtKind::for_loop: return "for";
    case StmtKind::repeat: return "repeat";
    case StmtKind::conditional: return "if";
    case StmtKind::return_value: return "return";
    case StmtKind::require: return "require";
    case StmtKind::input: return "input";
    case StmtKind::weight: return "weight";
    case StmtKind::region: return "region";
    case StmtKind::loss: return "loss";
    case StmtKind::order: return "order";
    case StmtKind::rank: return "rank";
    case StmtKind::cursor: return "cursor";
    case StmtKind::at: return "at";
    case StmtKind::error:
    case StmtKind::assign:
    case StmtKind::expr:
    case StmtKind::setting:
    case StmtKind::directive:
    case StmtKind::step: return "";
  }
  return "";
}

std::string_view sort_text(FunctionSort sort) {
  switch (sort) {
    case FunctionSort::def: return "def";
    case FunctionSort::schedule: return "schedule";
    case FunctionSort::model: return "model";
  }
  return "";
}

namespace {

/// How tightly an expression binds; an operand that binds less tightly than its place asks for
/// needs parentheses.
enum BindingStrength {
  kLoosest,
  kConditional = 0,
  kOr,
  kAnd,
  kNot,
  kCompare,
  kBy,
  kRange,
  kAdd,
  kMultiply,
  kNegate,
  kPrimary
};

int strength(BinaryOp op) {
  switch (op) {
    case BinaryOp::multiply:
    case BinaryOp::divide:
    case BinaryOp::remainder:
    case BinaryOp::contract: return kMultiply;
    case BinaryOp::add:
    case BinaryOp::subtract: return kAdd;
    case BinaryOp::range: return kRange;
    case BinaryOp::by: return kBy;
    case BinaryOp::logical_and: return kAnd;
    case BinaryOp::logical_or: return kOr;
    default: return kCompare;
  }
}

int strength(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::conditional: return kConditional;
    case ExprKind::unary: return llvm::cast<UnaryExpr>(expr).op == UnaryOp::negate ? kNegate : kNot;
    case ExprKind::binary: return strength(llvm::cast<BinaryExpr>(expr).op);
    default: return kPrimary;
  }
}

template <typename List, typename Write>
void write_list(std::string& out, const List& list, Write write) {
  bool first = true;
  for (const auto& element : list) {
    if (!first) out += ", ";
    first = false;
    write(element);
  }
}

void write(std::string& out, const Expr& expr, int least);

void write_exprs(std::string& out, ExprList list) {
  write_list(out, list, [&](const Expr* element) { write(out, *element, kLoosest); });
}

void write_bare(std::string& out, const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::error: out += "<error>"; return;
    case ExprKind::name: out += llvm::cast<NameExpr>(expr).name; return;
    case ExprKind::model: out += "model"; return;
    case ExprKind::number: out += llvm::cast<NumberExpr>(expr).text; return;
    case ExprKind::string:
      out += '"' + std::string(llvm::cast<StringExpr>(expr).value) + '"';
      return;
    case ExprKind::boolean: out += llvm::cast<BoolExpr>(expr).value ? "true" : "false"; return;
    case ExprKind::list:
      out += '[';
      write_exprs(out, llvm::cast<ListExpr>(expr).elements);
      out += ']';
      return;
    case ExprKind::comprehension: {
      const auto& node = llvm::cast<ComprehensionExpr>(expr);
      out += "[for " + source_text(node.bindings) + ": ";
      write_exprs(out, node.elements);
      out += ']';
      return;
    }
    case ExprKind::unary: {
      const auto& node = llvm::cast<UnaryExpr>(expr);
      out += op_text(node.op);
      if (node.op == UnaryOp::logical_not) out += ' ';
      write(out, *node.operand, node.op == UnaryOp::negate ? kNegate : kNot);
      return;
    }
    case ExprKind::binary: {
      const auto& node = llvm::cast<BinaryExpr>(expr);
      bool tight = node.op == BinaryOp::range;
      write(out, *node.left, strength(node.op));
      if (!tight) out += ' ';
      out += op_text(node.op);
      if (!tight) out += ' ';
      write(out, *node.right, strength(node.op) + 1);
      return;
    }
    case ExprKind::conditional: {
      const auto& node = llvm::cast<ConditionalExpr>(expr);
      out += "if ";
      write(out, *node.condition, kLoosest);
      out += " then ";
      write(out, *node.then_value, kLoosest);
      out += " else ";
      write(out, *node.else_value, kLoosest);
      return;
    }
    case ExprKind::index: {
      const auto& node = llvm::cast<IndexExpr>(expr);
      write(out, *node.base, kPrimary);
      out += '[';
      write_exprs(out, node.indices);
      out += ']';
      return;
    }
    case ExprKind::field: {
      const auto& node = llvm::cast<FieldExpr>(expr);
      write(out, *node.base, kPrimary);
      out += '.' + source_text(node.field);
      return;
    }
    case ExprKind::call: {
      const auto& node = llvm::cast<CallExpr>(expr);
      write(out, *node.callee, kPrimary);
      out += '(';
      write_list(out, node.args, [&](const Arg& arg) {
        if (!arg.name.missing()) out += std::string(arg.name.name) + ": ";
        write(out, *arg.value, kLoosest);
      });
      out += ')';
      return;
    }
    case ExprKind::selector: {
      const auto& node = llvm::cast<SelectorExpr>(expr);
      write(out, *node.head, kPrimary);
      for (const Coordinate& coordinate : node.coordinates) {
        out += ' ' + source_text(coordinate.dimension) + '[';
        write_exprs(out, coordinate.indices);
        out += ']';
      }
      return;
    }
    case ExprKind::op: {
      const auto& node = llvm::cast<OpExpr>(expr);
      out += pass_name(node.pass);
      if (node.operand != nullptr) {
        out += ' ';
        write(out, *node.operand, kPrimary);
      }
      return;
    }
  }
}

void write(std::string& out, const Expr& expr, int least) {
  bool parenthesised = strength(expr) < least;
  if (parenthesised) out += '(';
  write_bare(out, expr);
  if (parenthesised) out += ')';
}

}  // namespace

std::string source_text(const Expr& expr) {
  std::string out;
  write(out, expr, kLoosest);
  return out;
}

std::string source_text(const Identifier& name) {
  return name.missing() ? "<error>" : std::string(name.name);
}

std::string source_text(std::span<const Binding> bindings) {
  std::string out;
  write_list(out, bindings, [&](const Binding& b) {
    out += source_text(b.name) + " in " + source_text(*b.values);
  });
  return out;
}

std::string source_text(std::span<const Identifier> names) {
  std::string out;
  write_list(out, names, [&](const Identifier& name) { out += source_text(name); });
  return out;
}

std::string source_text(const Pair& pair) {
  return source_text(pair.name) + ": " + source_text(*pair.value);
}

std::string source_text(std::span<const Pair> pairs) {
  std::string out;
  write_list(out, pairs, [&](const Pair& pair) { out += source_text(pair); });
  return out;
}

std::string source_text(std::span<const Dim> dims) {
  std::string out = "[";
  write_list(out, dims, [&](const Dim& dim) {
    out += source_text(dim.name);
    if (dim.size != nullptr) out += ": " + source_text(*dim.size);
  });
  return out + ']';
}

std::string source_text(const TypeRef& type) {
  switch (type.kind) {
    case TypeKind::error: return "<error>";
    case TypeKind::name: return std::string(type.name.name);
    case TypeKind::shaped: return std::string(type.name.name) + source_text(type.dims);
    case TypeKind::list: return '[' + source_text(*type.element) + ']';
  }
  return "<error>";
}

std::string source_text(std::span<const Param> params) {
  std::string out;
  write_list(out, params, [&](const Param& param) {
    out += source_text(param.name) + ": " + source_text(*param.type);
    if (param.default_value != nullptr) out += " = " + source_text(*param.default_value);
  });
  return out;
}

std::string source_text(std::span<const Target> targets) {
  std::string out;
  write_list(out, targets, [&](const Target& target) {
    if (target.has_pass) out += std::string(pass_name(target.pass)) + ' ';
    out += source_text(*target.selector);
  });
  return out;
}

}  // namespace piper::ast
