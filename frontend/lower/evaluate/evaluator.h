#pragma once
// Elaboration: evaluates the expressions and statements of a typed program with concrete values.
//
// One evaluator lowers one train or schedule. Value statements (`let`, `for`, `if`, ...) are
// handled here; directives, orders and model statements go to the current builder, which exists
// exactly where the analysis allows such statements.
//
// After a diagnostic everything unwinds (callers check `failed()` and give up) to the innermost
// statement of a schedule, train, order or model, or to the rank of an order. That statement is
// left out, the names it would have given hold no value, and evaluation goes on. Using a name
// without a value fails too, silently: code that depends on a mistake gives no diagnostics, other
// code is checked.
//
// Guarantees: one diagnostic per code and place, however often a loop repeats it; ends within
// kMaxSteps evaluation steps and kMaxNesting expressions and statements inside each other, calls
// included, or reports which bound was passed.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/lower/evaluate/observations.h"
#include "frontend/lower/evaluate/value.h"
#include "frontend/sema/program.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::lower {

/// Whether running it may end the function.
bool may_return(const ast::Stmt& stmt);
bool may_return(const ast::Block& body);

class MachineBuilder;
class ModelBuilder;
class OrderBuilder;
class RankBuilder;
class ScheduleBuilder;

inline constexpr std::uint64_t kMaxSteps = 50'000'000;
/// Steps whose number does not fit into 64 bits.
inline constexpr std::uint64_t kUncounted = ~std::uint64_t{0};
/// Steps of a tensor operation: it costs more time and memory than a number by this factor.
inline constexpr std::uint64_t kStepsOfTensor = 100;
/// Steps of an element of a list: it stays in memory.
inline constexpr std::uint64_t kStepsOfElement = 8;
/// Steps of an operation of an order: it stays in memory, and a program may have millions.
inline constexpr std::uint64_t kStepsOfOperation = 4;
/// Steps of a call: its location stays in memory.
inline constexpr std::uint64_t kStepsOfCall = 20;
/// Each level takes stack; a call is at least three levels.
inline constexpr std::uint32_t kMaxNesting = 2000;

/// The locals of one call; slots are numbered by the analysis.
struct Frame {
  std::vector<Value> slots;
  LocId caller;  // the location of the call; invalid for a train
};

enum class Flow : std::uint8_t { next, returned, failed };

class Evaluator {
 public:
  Evaluator(const sema::Program& program, Context& context, DiagnosticSink& sink)
      : program_(&program), context_(&context), sink_(&sink) {}

  const sema::Program& program() const { return *program_; }
  Context& context() { return *context_; }
  /// Whether everything unwinds.
  bool failed() const { return failed_; }
  /// Whether anything failed so far: there will be no result.
  bool broken() const { return broken_; }

  // ---- expressions and statements
  /// The value; none after a failure.
  Value eval(const ast::Expr& expr, Frame& frame);
  Flow execute(const ast::Block& block, Frame& frame);
  /// Evaluates the body of a function whose frame is bound; gives the result (none if it returns
  /// nothing).
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
  /// The value converted to the type of its place: if a number is expected, ints become floats or
  /// byte counts and axes their sizes; in lists too. The analysis allows no other conversion.
  /// `range` and `frame` are its location.
  Value convert(Value value, sema::Type type, SourceRange range, const Frame& frame);
  std::int64_t to_int(const Value& value) const;
  double to_float(const Value& value) const;
  /// Whether `p[i]` names a coordinate of the axis; reports at the index that gives it when not.
  bool has_coordinate(const ast::IndexExpr& expr, const ast::Expr& at, std::int64_t index,
                      const AxisValue& axis, Frame& frame);
  /// The elements of a list or range; a lone value is a list of one. They count as steps: none, and
  /// a diagnostic, past the bound.
  Values elements(const Value& value, SourceRange range, const Frame& frame);

  // ---- places and failures
  LocId here(SourceRange range, const Frame& frame);
  template <typename... Args>
  DiagnosticBuilder fail(Code code, SourceRange range, const Frame& frame,
                         MessagePattern<std::type_identity_t<Args>...> pattern,
                         const Args&... args) {
    return fail_at(code, here(range, frame), pattern, args...);
  }
  template <typename... Args>
  DiagnosticBuilder fail_at(Code code, LocId loc,
                            MessagePattern<std::type_identity_t<Args>...> pattern,
                            const Args&... args) {
    DiagnosticBuilder builder = sink_for(code, loc).report(code, loc, pattern, args...);
    if (claim)
      builder.related(claim_loc, "in the order of `{}`", print(*claim, *mesh, context_->symbols));
    return builder;
  }
  /// Reports a warning, once per code and place. Does not fail.
  template <typename... Args>
  DiagnosticBuilder warn(Code code, SourceRange range, const Frame& frame,
                         MessagePattern<std::type_identity_t<Args>...> pattern,
                         const Args&... args) {
    const LocId loc = here(range, frame);
    if (first_warning(code, loc)) return sink_->report(code, loc, pattern, args...);
    unread_.emplace(context_->locations);
    return unread_->report(code, loc, pattern, args...);
  }
  /// Begins a part of the program that does not depend on what failed so far.
  void begin_independent() { broken_ = false; }
  /// Fails silently, because a value that failed before is needed here.
  void set_failed() { failed_ = broken_ = true; }
  /// The requirement that ended a schedule or model most recently; the statements after it were not
  /// run.
  const ast::Stmt* failed_requirement() const { return failed_requirement_; }
  /// The expression of the innermost `return` that is being evaluated; null where none is.
  const ast::Expr* returning() const { return returning_; }
  /// Whether the body of a schedule, model or `def` is being run, and not only that of a train.
  bool in_function() const { return functions_ > 0; }
  /// Runs a postponed part of a body, as if it were still there. Whether it succeeded; if not,
  /// unwinding has ended.
  template <typename Body>
  bool run_postponed(bool in_function, const Body& body) {
    const bool skips = std::exchange(skips_statements, true);
    functions_ += in_function ? 1 : 0;
    body();
    functions_ -= in_function ? 1 : 0;
    skips_statements = skips;
    abandons_ = false;
    if (!failed_) return true;
    resume();
    return false;
  }
  /// Ends unwinding, so that statements beside the failure are checked. False if evaluation cannot
  /// go on.
  bool resume();
  /// Says how many diagnostics were not shown.
  void finish_reports();
  void divided_by_zero(const ast::Expr& divisor, const Frame& frame);
  /// Counts steps; false, and a diagnostic, past the bound.
  bool step(SourceRange range, const Frame& frame, std::uint64_t count = 1) {
    if (count > kMaxSteps - steps_) return out_of_steps(range, frame, count);
    steps_ += count;
    return !failed_;
  }

  // ---- current state
  /// The mesh that axes and devices refer to.
  Mesh* mesh = nullptr;
  DeviceSetTable* device_sets = nullptr;
  ModelBuilder* model = nullptr;
  OrderBuilder* order = nullptr;
  RankBuilder* rank = nullptr;
  ScheduleBuilder* schedule = nullptr;
  MachineBuilder* machine = nullptr;
  /// The devices whose order is elaborated, and the line that claims them.
  const DeviceSet* claim = nullptr;
  LocId claim_loc;
  /// Set while the coordinates of a `rank` are elaborated that follow one with a reported cursor
  /// error: they would repeat it with their own numbers.
  bool cursors_reported = false;
  /// Whether a statement that fails in the body being run is left out. Not in ranks and value
  /// functions: there each statement needs the others.
  bool skips_statements = false;

  /// The value of a param: an override, or its expression evaluated when it is first asked for.
  Value param(std::size_t position);
  /// The value that the program gives to a param, or its choices; at least one unless it fails.
  Values values_of_param(std::size_t position);
  /// By position in Program::params; values of `-D` are here from the beginning.
  std::vector<std::optional<Value>> params;
  /// Receives the values of expressions; may be null.
  Observations* observations = nullptr;
  const tensor::Graph* observed_model = nullptr;
  /// Strings given by `-D`: paths in them are relative to the working directory, others to the file
  /// that holds them.
  std::unordered_set<const std::string*> override_strings;

 private:
  /// A loop that is running, of a statement or of a list.
  struct Loop {
    SourceRange bounds;
    LocId caller;
    std::uint64_t rounds = 0, done = 0;
  };
  /// The loop is running in the scope.
  class Running {
   public:
    Running(Evaluator& evaluator, SourceRange bounds, const Frame& frame, std::uint64_t rounds)
        : loops_(evaluator.loops_) {
      loops_.push_back({bounds, frame.caller, rounds, 0});
    }
    ~Running() { loops_.pop_back(); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    void next() { ++loops_.back().done; }

   private:
    std::vector<Loop>& loops_;
  };
  /// Counts the elements that `value` brings into a list.
  bool step_elements(const Value& value, SourceRange range, const Frame& frame);
  /// Each iteration is at least one step, so a loop that is too long and cannot end earlier is
  /// refused before it runs: true, and a diagnostic.
  bool too_many_rounds(std::uint64_t rounds, const ast::Block& body, SourceRange range,
                       const Frame& frame);
  bool out_of_steps(SourceRange range, const Frame& frame, std::uint64_t count);
  Value eval_node(const ast::Expr& expr, Frame& frame);
  Value eval_name(const ast::NameExpr& expr, Frame& frame);
  Value eval_number(const ast::NumberExpr& expr) const;
  Value eval_list(std::span<ast::Expr* const> elements, Frame& frame);
  Value eval_comprehension(const ast::ComprehensionExpr& expr, Frame& frame);
  Value eval_unary(const ast::UnaryExpr& expr, Frame& frame);
  Value eval_binary(const ast::BinaryExpr& expr, Frame& frame);
  Value eval_compare(const ast::BinaryExpr& expr, const Value& left, const Value& right,
                     Frame& frame);
  Value arithmetic(const ast::BinaryExpr& expr, const Value& left, const Value& right,
                   Frame& frame);
  Value eval_index(const ast::IndexExpr& expr, Frame& frame);
  bool in_range(const ast::IndexExpr& expr, const ast::Expr& at, std::int64_t index,
                std::int64_t size, std::string_view described, Frame& frame);
  Value eval_call(const ast::CallExpr& expr, Frame& frame);
  Value eval_builtin(const ast::CallExpr& expr, Frame& frame);
  Value eval_builtin_value(sema::Builtin id);
  /// A transform of an order, `greedy` or `search`.
  Value eval_order_call(sema::Builtin id, const ast::CallExpr& expr, Frame& frame);
  Value eval_setting_call(sema::Builtin id, const ast::CallExpr& expr, Frame& frame);
  void append_selector(directive::Selector& selector, const ast::Expr& expr, Frame& frame);
  void append_value(directive::Selector& selector, const Value& value);
  void append_indices(directive::Coordinate& coordinate, std::span<ast::Expr* const> indices,
                      Frame& frame);
  Flow execute(const ast::Stmt& stmt, Frame& frame);
  Flow execute_node(const ast::Stmt& stmt, Frame& frame);
  void execute_let(const ast::LetStmt& let, Frame& frame);
  void execute_assign(const ast::AssignStmt& assign, Frame& frame);
  Flow execute_repeat(const ast::RepeatStmt& repeat, Frame& frame);
  /// Records the elements that the loop left to its cursors, if observed.
  Flow behind_loop(const ast::Stmt& loop, Flow flow, Frame& frame);
  Flow execute_call(const ast::ExprStmt& stmt, Frame& frame);
  Flow execute_for(std::span<const ast::Binding> bindings, const ast::Block& body, Frame& frame);
  /// After `stmt` failed: removes the values of the names it declares. False if the body cannot go
  /// on without it.
  bool leave_out(const ast::Stmt& stmt, Frame& frame);
  /// The sink for a failure at that place; an unread one if the place has reported it before.
  DiagnosticSink& sink_for(Code code, LocId loc);
  bool first_warning(Code code, LocId loc);
  Flow execute_require(const ast::RequireStmt& stmt, Frame& frame);
  void require_failed(const ast::RequireStmt& stmt, Frame& frame);
  /// The sizes near those of the schedule or model being run at which its requirements hold; empty
  /// where none are known.
  std::string legal_sizes(const Frame& frame) const;

  const sema::Program* program_;
  Context* context_;
  DiagnosticSink* sink_;
  Value returned_;
  const ast::Expr* returning_ = nullptr;
  std::uint64_t steps_ = 0;
  std::uint32_t nesting_ = 0;
  std::uint32_t functions_ = 0;              // being run
  const sema::Function* running_ = nullptr;  // the innermost of them
  bool failed_ = false;
  bool broken_ = false;
  std::vector<Loop> loops_;  // those that are running, the innermost last
  bool exhausted_ = false;   // a bound on steps or nesting was passed
  bool abandons_ = false;    // a requirement of the function being run failed
  const ast::Stmt* failed_requirement_ = nullptr;
  std::set<std::pair<Code, SourceRange>> reported_, warned_;
  std::size_t not_shown_ = 0;
  LocId last_not_shown_;
  std::optional<DiagnosticSink> unread_;
};

/// True if a selector is written out (`stage[0] mb[1]`, `model.reduce`), not held in a local.
bool is_written_selector(const ast::Expr& expr);

}  // namespace piper::lower
