#pragma once
// Expressions of the AST: plain nodes in the arena of an `ast::Module`.
//
// Guarantees: every node has a range inside its file; pointers are never null unless the comment
// says so; text that is missing or did not parse is an `ErrorExpr` (its range may be empty) or an
// `Identifier` without a name. Test the kind of a node with llvm::isa and llvm::dyn_cast.
//
//   `stage[c*p + r] mb[0..m]` is Selector{Index{Name stage, [c*p + r]}, [Coordinate{mb, [0..m]}]}

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/location.h"
#include "ir/pass.h"
#include "llvm/Support/Casting.h"

namespace piper::ast {

/// A binding that the analysis has not set, or could not set because of an error.
constexpr std::uint32_t kUnbound = 0xFFFFFFFFu;

/// A name as written in the text; an empty name is missing there and already reported.
struct Identifier {
  std::string_view name;
  SourceRange range;
  /// Set by the analysis. For a name that declares, assigns or reads a local: its slot. For a label
  /// (a region, a dimension of a selector, a communication part, the name of an open argument): its
  /// Symbol's value.
  mutable std::uint32_t binding = kUnbound;

  bool missing() const { return name.empty(); }
};

enum class ExprKind : std::uint8_t {
  error,
  name,
  model,
  number,
  string,
  boolean,
  list,
  comprehension,
  unary,
  binary,
  conditional,
  index,
  field,
  call,
  selector,
  op,
};

struct Expr {
  ExprKind kind;
  mutable std::uint16_t type = 0;  // bits of a sema::Type, set by the analysis; 0: none known
  SourceRange range;

 protected:
  Expr(ExprKind kind_of_node, SourceRange range_of_node)
      : kind(kind_of_node), range(range_of_node) {}
};

/// Gives each node its kind, its constructor and the `classof` of llvm::dyn_cast.
template <ExprKind K>
struct ExprNode : Expr {
  explicit ExprNode(SourceRange range_of_node) : Expr(K, range_of_node) {}
  static bool classof(const Expr* expr) { return expr->kind == K; }
};

using ExprList = std::span<Expr* const>;

/// Text that did not parse, or nothing where an expression is missing. Reported by the parser.
struct ErrorExpr : ExprNode<ExprKind::error> {
  using ExprNode::ExprNode;
};

/// The kind of entity that a name refers to; set by the analysis. It decides the meaning of the
/// `target` beside it.
enum class Referent : std::uint8_t {
  unresolved,  // not analysed, or unknown and reported
  local,       // slot in the frame of the body
  param,       // position in sema::Program::params
  function,    // position in sema::Program::functions
  builtin,     // value of a sema::Builtin
  label,       // value of a Symbol
  names,       // position in sema::Program::names
};

/// `x`
struct NameExpr : ExprNode<ExprKind::name> {
  using ExprNode::ExprNode;
  std::string_view name;
  mutable Referent referent = Referent::unresolved;  // set by the analysis
  mutable std::uint32_t target = kUnbound;
};

/// `model`: the whole model, in selectors.
struct ModelExpr : ExprNode<ExprKind::model> {
  using ExprNode::ExprNode;
};

enum class Unit : std::uint8_t { none, kib, mib, gib, ns, us, ms, s };

/// The suffix as written, for example `MiB`; empty for `none`.
std::string_view unit_name(Unit unit);
/// The unit of that suffix; `none` where there is none.
Unit unit_of(std::string_view suffix);
/// How many bytes one of it is; 0 where it counts no bytes.
double unit_bytes(Unit unit);

/// `8`, `3e-4`, `25MiB`, `1.5ms`
struct NumberExpr : ExprNode<ExprKind::number> {
  using ExprNode::ExprNode;
  std::string_view text;     // with the unit
  bool is_integer = false;   // written without point and exponent
  std::int64_t integer = 0;  // without the unit; only if is_integer
  double real = 0;           // without the unit
  Unit unit = Unit::none;
};

/// `"corpus.txt"`; there are no escapes.
struct StringExpr : ExprNode<ExprKind::string> {
  using ExprNode::ExprNode;
  std::string_view value;
};

/// `true`, `false`
struct BoolExpr : ExprNode<ExprKind::boolean> {
  using ExprNode::ExprNode;
  bool value = false;
};

/// `[a, b]`, `[]`
struct ListExpr : ExprNode<ExprKind::list> {
  using ExprNode::ExprNode;
  ExprList elements;
};

/// `i in 0..m by group`; the last of several binds fastest.
struct Binding {
  Identifier name;
  Expr* values = nullptr;
  SourceRange range;
};

/// `[for i in 0..m, c in 0..v: stage[c] mb[i]]`
struct ComprehensionExpr : ExprNode<ExprKind::comprehension> {
  using ExprNode::ExprNode;
  std::span<const Binding> bindings;
  ExprList elements;
};

enum class UnaryOp : std::uint8_t { negate, logical_not };

/// `-x`, `not x`
struct UnaryExpr : ExprNode<ExprKind::unary> {
  using ExprNode::ExprNode;
  UnaryOp op{};
  Expr* operand = nullptr;
};

enum class BinaryOp : std::uint8_t {
  multiply,
  divide,
  remainder,
  contract,
  add,
  subtract,
  range,
  by,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
};

/// `*`, `/`, `%`, `@`, `+`, `-`, `..`, `by`, `==`, ... `and`, `or`.
std::string_view op_text(BinaryOp op);
std::string_view op_text(UnaryOp op);

/// `a @ b`. `0..m by k` is by(range(0, m), k).
struct BinaryExpr : ExprNode<ExprKind::binary> {
  using ExprNode::ExprNode;
  BinaryOp op{};
  SourceRange op_range;
  Expr* left = nullptr;
  Expr* right = nullptr;
};

/// `if c then a else b`
struct ConditionalExpr : ExprNode<ExprKind::conditional> {
  using ExprNode::ExprNode;
  Expr* condition = nullptr;
  Expr* then_value = nullptr;
  Expr* else_value = nullptr;
};

/// `stage[s]`, `table[i, j]`
struct IndexExpr : ExprNode<ExprKind::index> {
  using ExprNode::ExprNode;
  Expr* base = nullptr;
  ExprList indices;
};

/// `model.reduce`
struct FieldExpr : ExprNode<ExprKind::field> {
  using ExprNode::ExprNode;
  Expr* base = nullptr;
  Identifier field;
};

/// `x` or `name: x`. The value is an OpExpr in `left(F a)`.
struct Arg {
  Identifier name;  // missing() for a positional argument
  Expr* value = nullptr;
  SourceRange range;
};

/// `f(x, causal: true)`; a method `o.trim(mb: m)` has a FieldExpr as its callee, whose base is the
/// receiver.
struct CallExpr : ExprNode<ExprKind::call> {
  using ExprNode::ExprNode;
  Expr* callee = nullptr;
  std::span<const Arg> args;
  // Set by the analysis.
  mutable Referent referent = Referent::unresolved;  // function or builtin
  mutable std::uint32_t target = kUnbound;
  // Per parameter of the callee: the position in `args`; -1: its default.
  mutable std::span<const std::int32_t> matched;
  // Arguments of a variadic (`max(a, b)`) or open (`rename(x, a: b)`) builtin.
  mutable std::span<const std::uint32_t> rest;
};

/// `mb[0..m]` after another coordinate.
struct Coordinate {
  Identifier dimension;
  ExprList indices;
  SourceRange range;
};

/// `stage[r] mb[0..m]`: a head with at least one further coordinate. A lone `stage[r]` is an
/// IndexExpr.
struct SelectorExpr : ExprNode<ExprKind::selector> {
  using ExprNode::ExprNode;
  Expr* head = nullptr;
  std::span<const Coordinate> coordinates;
};

/// `F stage[0] mb[1]`, `BW`: an operation, in steps and as an argument.
struct OpExpr : ExprNode<ExprKind::op> {
  using ExprNode::ExprNode;
  Pass pass{};
  SourceRange pass_range;
  Expr* operand = nullptr;  // null for a bare pass letter
};

}  // namespace piper::ast
