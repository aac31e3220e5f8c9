#pragma once
// Statements of the AST. Guarantees as in frontend/ast/expr.h.
//
// Which statements a body may hold (model, schedule, order, steps, value) is checked by the
// analysis, not here.

#include <cstdint>
#include <span>
#include <string_view>

#include "frontend/ast/expr.h"
#include "ir/directive/directive_rows.h"

namespace piper::ast {

struct Stmt;

/// `{ ... }`, braces included in the range.
struct Block {
  std::span<Stmt* const> statements;
  SourceRange range;
};

/// `stage: 4`, `bucket: 25MiB`
struct Pair {
  Identifier name;
  Expr* value = nullptr;
  SourceRange range;
};

/// `dim`, `width: dim / heads`
struct Dim {
  Identifier name;
  Expr* size = nullptr;  // null: the size is the value of the name
  SourceRange range;
};

enum class TypeKind : std::uint8_t { error, name, shaped, list };

/// `int`, `order`, `f32[batch, dim]`, `[selector]`
struct TypeRef {
  TypeKind kind = TypeKind::error;
  SourceRange range;
  Identifier name;                   // name and shaped
  std::span<const Dim> dims;         // shaped
  const TypeRef* element = nullptr;  // list; else null
};

/// `x: int = 3`
struct Param {
  Identifier name;
  const TypeRef* type = nullptr;
  Expr* default_value = nullptr;  // null: none
  SourceRange range;
};

/// `B stage[0] mb[1]`, `stage[0]`: a selector with an optional pass.
struct Target {
  bool has_pass = false;
  Pass pass{};
  Expr* selector = nullptr;
  SourceRange range;
};

/// `F a`, or `{ F a; F b }`; one of the two pointers is null.
struct StepMember {
  OpExpr* op = nullptr;
  Block* block = nullptr;
  SourceRange range;
};

/// `F a`, `F a & B b`, `{ F a; F b } & BW`
struct Step {
  std::span<const StepMember> members;
  SourceRange range;
};

enum class StmtKind : std::uint8_t {
  error,
  let,
  var,
  assign,
  expr,
  for_loop,
  repeat,
  conditional,
  return_value,
  require,
  setting,
  input,
  weight,
  region,
  loss,
  directive,
  order,
  rank,
  cursor,
  at,
  step,
};

inline constexpr std::size_t kNumStmtKinds = static_cast<std::size_t>(StmtKind::step) + 1;

/// The word that statements of the kind begin with; empty if they have none, or if directives.def
/// has it.
std::string_view keyword_of(StmtKind kind);

struct Stmt {
  StmtKind kind;
  SourceRange range;
  /// Set by the analysis: it has reported an error in the statement itself, or in something that
  /// the statement needs. Statements in its blocks have their own flag.
  mutable bool refused = false;
  /// Set by the analysis: a part of it did not parse. It is refused, and its text may have had more
  /// than this node.
  mutable bool damaged = false;

 protected:
  Stmt(StmtKind kind_of_node, SourceRange range_of_node)
      : kind(kind_of_node), range(range_of_node) {}
};

template <StmtKind K>
struct StmtNode : Stmt {
  explicit StmtNode(SourceRange range_of_node) : Stmt(K, range_of_node) {}
  static bool classof(const Stmt* stmt) { return stmt->kind == K; }
};

/// Text that is not a statement. Reported by the parser.
struct ErrorStmt : StmtNode<StmtKind::error> {
  using StmtNode::StmtNode;
};

/// `let a, b = e`
struct LetStmt : StmtNode<StmtKind::let> {
  using StmtNode::StmtNode;
  std::span<const Identifier> names;
  Expr* value = nullptr;
};

/// `var x = e`
struct VarStmt : StmtNode<StmtKind::var> {
  using StmtNode::StmtNode;
  Identifier name;
  Expr* value = nullptr;
  mutable std::uint16_t type = 0;  // of the variable; set by the analysis
};

/// `x = e`
struct AssignStmt : StmtNode<StmtKind::assign> {
  using StmtNode::StmtNode;
  Identifier name;
  Expr* value = nullptr;
  mutable std::uint16_t type = 0;  // of the variable; set by the analysis
};

/// `one_f_one_b(pp, 8)`: a call that applies a schedule or splices steps. Other primaries parse
/// too.
struct ExprStmt : StmtNode<StmtKind::expr> {
  using StmtNode::StmtNode;
  Expr* value = nullptr;
};

/// `for i in 0..m, c in 0..v { }`
struct ForStmt : StmtNode<StmtKind::for_loop> {
  using StmtNode::StmtNode;
  std::span<const Binding> bindings;
  Block* body = nullptr;
};

/// `repeat n { }`
struct RepeatStmt : StmtNode<StmtKind::repeat> {
  using StmtNode::StmtNode;
  Expr* count = nullptr;
  Block* body = nullptr;
};

struct Branch {
  Expr* condition = nullptr;
  Block* body = nullptr;
};

/// `if c { } else if d { } else { }`
struct IfStmt : StmtNode<StmtKind::conditional> {
  using StmtNode::StmtNode;
  std::span<const Branch> branches;  // at least one
  Block* otherwise = nullptr;        // null: no `else`
};

/// `return e`
struct ReturnStmt : StmtNode<StmtKind::return_value> {
  using StmtNode::StmtNode;
  Expr* value = nullptr;
};

/// `require c else "why"`
struct RequireStmt : StmtNode<StmtKind::require> {
  using StmtNode::StmtNode;
  Expr* condition = nullptr;
  StringExpr* message = nullptr;  // null: none
};

/// The settings of a train. The analysis checks their values.
inline constexpr std::string_view kTrainSettings[] = {
    "checkpoint", "data", "device", "dtype", "ema",       "evaluate",
    "held_out",   "init", "optim",  "seed",  "skip_step", "steps"};

/// `steps: 200`
struct SettingStmt : StmtNode<StmtKind::setting> {
  using StmtNode::StmtNode;
  Pair setting;
};

/// `input tokens: i64[batch, seq]`
struct InputStmt : StmtNode<StmtKind::input> {
  using StmtNode::StmtNode;
  std::span<const Param> inputs;
};

/// `up[dim, hidden: 4*dim]` of a `weight`
struct WeightDecl {
  Identifier name;
  std::span<const Dim> dims;
  SourceRange range;
};

/// `weight up[dim, hidden], down[hidden, dim] = normal(0.02)`
struct WeightStmt : StmtNode<StmtKind::weight> {
  using StmtNode::StmtNode;
  std::span<const WeightDecl> weights;
  Expr* init = nullptr;  // null: the default initialisation
};

/// `region stage { }`
struct RegionStmt : StmtNode<StmtKind::region> {
  using StmtNode::StmtNode;
  Identifier name;
  Block* body = nullptr;
};

/// `loss e`
struct LossStmt : StmtNode<StmtKind::loss> {
  using StmtNode::StmtNode;
  Expr* value = nullptr;
};

/// `partition model into stage: 4 with sizes: [7, 8, 8, 5]`, `place stage[s] on p[s]`,
/// `stream p2p: model.send with window: 4`. Its row of directives.def says which parts it has; the
/// others are null or empty.
struct DirectiveStmt : StmtNode<StmtKind::directive> {
  using StmtNode::StmtNode;
  directive::DirectiveKind directive{};
  Expr* region = nullptr;  // subject `region`
  // Subject `dimension`: of the model; subject `named`: of the targets.
  Identifier name;
  std::span<const Target> targets;   // subjects `targets` and `named`
  std::span<const Pair> into;        // at least one after a region
  std::span<const Target> in;        // empty: the whole model
  Expr* devices = nullptr;           // `on`
  std::span<const Identifier> axes;  // `over`
  std::span<const Identifier> dims;  // `by`
  std::span<const Pair> settings;    // `with`

  const directive::DirectiveRow& row() const { return directive::row_of(directive); }
};

/// `order { rank ... }` or `order zbv_ranks(p, m).trim(mb: m)`; one of the two pointers is null.
struct OrderStmt : StmtNode<StmtKind::order> {
  using StmtNode::StmtNode;
  Expr* value = nullptr;
  Block* body = nullptr;
};

/// `rank r in pp, d in dp { }`
struct RankStmt : StmtNode<StmtKind::rank> {
  using StmtNode::StmtNode;
  std::span<const Binding> bindings;
  Block* body = nullptr;
};

/// `cursor a = fs backward bs`
struct CursorStmt : StmtNode<StmtKind::cursor> {
  using StmtNode::StmtNode;
  Identifier name;
  Expr* forward = nullptr;
  Expr* backward = nullptr;  // null: as forward
};

/// `at 6*i + r: F stage[r] mb[i]`
struct AtStmt : StmtNode<StmtKind::at> {
  using StmtNode::StmtNode;
  Expr* slot = nullptr;
  Step step;
};

/// `F a & B b`
struct StepStmt : StmtNode<StmtKind::step> {
  using StmtNode::StmtNode;
  Step step;
};

}  // namespace piper::ast
