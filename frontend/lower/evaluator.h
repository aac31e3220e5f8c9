#pragma once
// Elaboration: evaluates the expressions and statements of a typed program with concrete values.
//
// One evaluator lowers one train or schedule. Value statements (`let`, `for`, `if`, ...) are handled here; directives, orders and model
// statements go to the builder in force, which exists exactly where the analysis allows such statements. After the first
// diagnostic everything unwinds: callers check `failed()` and give up.
//
// Guarantees: ends within kMaxSteps evaluation steps and kMaxNesting expressions and statements inside each other, calls included, or
// reports which bound was passed.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "frontend/lower/value.h"
#include "frontend/sema/program.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::lower {

class ModelBuilder;
class OrderBuilder;
class RankBuilder;
class ScheduleBuilder;

inline constexpr std::uint64_t kMaxSteps = 50'000'000;
/// Each level takes stack; a call is at least three levels.
inline constexpr std::uint32_t kMaxNesting = 2000;

/// The locals of one call; slots are numbered by the analysis.
struct Frame {
  std::vector<Value> slots;
  LocId caller;  // where the call stands; invalid for a train
};

enum class Flow : std::uint8_t { next, returned, failed };

class Evaluator {
 public:
  Evaluator(const sema::Program& program, Context& context, DiagnosticSink& sink) : program_(&program), context_(&context), sink_(&sink) {}

  const sema::Program& program() const { return *program_; }
  Context& context() { return *context_; }
  bool failed() const { return failed_; }

  // ---- expressions and statements
  /// The value; none after a failure.
  Value eval(const ast::Expr& expr, Frame& frame);
  Flow execute(const ast::Block& block, Frame& frame);
  /// Evaluates the body of a function whose frame is bound; gives what it returns (none when it returns nothing).
  Value run(const sema::Function& function, Frame& frame);
  /// The frame of a call: arguments in the caller's frame, defaults in the callee's.
  Frame bind(const sema::Function& function, const ast::CallExpr& call, Frame& caller);
  /// The two halves of `bind`: a model binds the dimensions of its parameters between them.
  Frame bind_arguments(const sema::Function& function, const ast::CallExpr& call, Frame& caller);
  void bind_defaults(const sema::Function& function, const ast::CallExpr& call, Frame& callee);
  /// The value of argument `param` of a builtin's call; nothing when it is left out.
  std::optional<Value> argument(const ast::CallExpr& call, std::size_t param, Frame& frame);

  // ---- conversions; the analysis has checked the types
  std::int64_t eval_int(const ast::Expr& expr, Frame& frame);
  double eval_float(const ast::Expr& expr, Frame& frame);
  bool eval_bool(const ast::Expr& expr, Frame& frame);
  DeviceSetId eval_devices(const ast::Expr& expr, Frame& frame);
  directive::Selector eval_selector(const ast::Expr& expr, Frame& frame);
  directive::Selector eval_target(const ast::Target& target, Frame& frame);
  /// The value as its place takes it: ints become floats or byte counts, axes their sizes; in lists too. The analysis allows no other conversion.
  Value convert(Value value, sema::Type type) const;
  std::int64_t to_int(const Value& value) const;
  double to_float(const Value& value) const;
  /// The elements of a list, range or axis (its coordinates); a lone value is a list of one.
  Values elements(const Value& value) const;

  // ---- places and failures
  LocId here(SourceRange range, const Frame& frame);
  template <typename... Args>
  DiagnosticBuilder fail(Code code, SourceRange range, const Frame& frame, MessagePattern<std::type_identity_t<Args>...> pattern, const Args&... args) {
    failed_ = true;
    return sink_->report(code, here(range, frame), pattern, args...);
  }
  DiagnosticSink& sink() { return *sink_; }
  void set_failed() { failed_ = true; }
  /// Counts steps; false, and a diagnostic, past the bound.
  bool step(SourceRange range, const Frame& frame, std::uint64_t count = 1);

  // ---- what is in force
  /// The mesh that axes and devices refer to.
  Mesh* mesh = nullptr;
  DeviceSetTable* device_sets = nullptr;
  ModelBuilder* model = nullptr;
  OrderBuilder* order = nullptr;
  RankBuilder* rank = nullptr;
  ScheduleBuilder* schedule = nullptr;

  /// The value of a param: an override, or its expression evaluated when it is first asked for.
  Value param(std::size_t position);
  /// By position in Program::params; what `-D` gives stands here from the beginning.
  std::vector<std::optional<Value>> params;
  /// Strings given by `-D`: paths in them are relative to the working directory, others to the file that holds them.
  std::unordered_set<const std::string*> override_strings;

 private:
  Value eval_node(const ast::Expr& expr, Frame& frame);
  Value eval_name(const ast::NameExpr& expr, Frame& frame);
  Value eval_number(const ast::NumberExpr& expr) const;
  Value eval_list(std::span<ast::Expr* const> elements, Frame& frame);
  Value eval_comprehension(const ast::ComprehensionExpr& expr, Frame& frame);
  Value eval_unary(const ast::UnaryExpr& expr, Frame& frame);
  Value eval_binary(const ast::BinaryExpr& expr, Frame& frame);
  Value eval_compare(const ast::BinaryExpr& expr, const Value& left, const Value& right, Frame& frame);
  Value arithmetic(const ast::BinaryExpr& expr, const Value& left, const Value& right, Frame& frame);
  Value eval_index(const ast::IndexExpr& expr, Frame& frame);
  Value eval_call(const ast::CallExpr& expr, Frame& frame);
  Value eval_builtin(const ast::CallExpr& expr, Frame& frame);
  Value eval_builtin_value(sema::Builtin id);
  Value eval_setting_call(sema::Builtin id, const ast::CallExpr& expr, Frame& frame);
  void append_selector(directive::Selector& selector, const ast::Expr& expr, Frame& frame);
  void append_value(directive::Selector& selector, const Value& value);
  void append_indices(directive::Coordinate& coordinate, std::span<ast::Expr* const> indices, Frame& frame);
  Flow execute(const ast::Stmt& stmt, Frame& frame);
  Flow execute_node(const ast::Stmt& stmt, Frame& frame);
  Flow execute_call(const ast::ExprStmt& stmt, Frame& frame);
  Flow execute_for(std::span<const ast::Binding> bindings, const ast::Block& body, Frame& frame);
  Flow execute_require(const ast::RequireStmt& stmt, Frame& frame);
  void require_failed(const ast::RequireStmt& stmt, Frame& frame);

  const sema::Program* program_;
  Context* context_;
  DiagnosticSink* sink_;
  Value returned_;
  std::uint64_t steps_ = 0;
  std::uint32_t nesting_ = 0;
  bool failed_ = false;
};

/// True where a selector is written out (`stage[0] mb[1]`, `model.reduce`), not held in a local.
bool is_written_selector(const ast::Expr& expr);

}  // namespace piper::lower
