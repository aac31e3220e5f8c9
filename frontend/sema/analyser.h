#pragma once
// The analysis of all bodies of a program; `analyse` in program.h is its entry.
//
// Expressions are checked with a hint, the type that their place expects (kind `error`: none): it
// decides between values and labels, and never converts. `expect` checks the conversion and
// reports. Type `error` fits everything, so that one mistake is reported once.
//
// Beside text that did not parse, and files that were not found, the analysis reports nothing that
// would be a guess (`worth_reporting`).

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontend/sema/program.h"
#include "frontend/sema/statements.h"
#include "frontend/source/selected_reports.h"

namespace piper::sema {

/// Types of scalars, for brevity at the many places that name them.
constexpr Type kError{};
constexpr Type kNone{TypeKind::none};
constexpr Type kInt{TypeKind::integer};
constexpr Type kFloat{TypeKind::floating};
constexpr Type kBool{TypeKind::boolean};
constexpr Type kString{TypeKind::string};
constexpr Type kBytes{TypeKind::bytes};
constexpr Type kAxis{TypeKind::axis};
constexpr Type kDevices{TypeKind::devices};
// The type after `rank ... in`; expected only, no expression has it.
constexpr Type kCoordinates{TypeKind::devices, true};
constexpr Type kSelector{TypeKind::selector};
constexpr Type kSelectors{TypeKind::selector, true};
constexpr Type kCursor{TypeKind::cursor};
constexpr Type kOrder{TypeKind::order};
constexpr Type kTensor{TypeKind::tensor};
constexpr Type kInts{TypeKind::integer, true};

/// True if a value of type `from` may be used where `to` is expected.
bool converts(Type from, Type to);
/// The type of a choice between the two, if they have one.
std::optional<Type> common_type(Type a, Type b);
/// "an `int`", "a `[selector]`".
std::string with_article(Type type);
/// A hint with the words that are values of the type, `write `epoch` or `replacement``; empty for a
/// type with other values.
std::string_view words_of(Type type);

/// The place of a value, for messages: either `what` ("the count of `repeat`"), or the parameter
/// `name` of `owner`.
struct Place {
  std::string_view what;
  std::string_view name = {};
  std::string_view owner = {};
  SourceRange declared = {};

  std::string text() const;
};

class Analyser {
 public:
  Analyser(Program& program, Context& context, DiagnosticSink& sink, std::size_t shown_errors)
      : program_(program),
        context_(context),
        shown_errors_(shown_errors),
        all_(sink),
        sink_(sink, [this](Code code, SourceRange at) {
          return worth_reporting(code, at) && shows(code, at);
        }) {}

  void run();

 private:
  enum class DeclKind : std::uint8_t { param, mesh, function, train, machine, names };
  struct Declaration {
    DeclKind kind{};
    std::uint32_t index = 0;  // in the program's list of that kind
    SourceRange range = {};
  };
  enum class LocalKind : std::uint8_t {
    parameter,
    let,
    var,
    loop,
    cursor,
    dimension,
    weight,
    input,
    axis
  };
  struct Local {
    std::string_view name;
    Type type;
    LocalKind kind{};
    std::uint32_t slot = 0;
    SourceRange range;
    bool used = false;
  };
  struct Body {
    BodySort sort = BodySort::value;
    ModuleId module;
    const Function* function = nullptr;  // null in a train, a param, a mesh
    std::uint32_t node = 0;              // in calls_
    std::uint32_t next_slot = 0;
    std::size_t own_from = 0;  // locals before this position belong to an outer body
    // While defaults are checked: parameters from here on are not known yet.
    std::size_t visible_params = SIZE_MAX;
    std::uint32_t depth = 0;  // of blocks; 1: directly in the body
    std::size_t errors = 0;   // of the sink when the body began
    SourceRange first_rank, first_return;
    bool measure_reported = false;  // a misplaced measure was reported in this statement
  };
  struct Call {
    std::uint32_t callee;
    SourceRange range;
  };

  // analyse.cpp: declarations and their bodies.
  void declare_module(ModuleId id);
  void visit_module(ModuleId id, std::vector<bool>& seen, std::vector<ModuleId>& used_first);
  void check_param(Param& param, std::uint32_t node);
  void check_mesh(Mesh& mesh, std::uint32_t node);
  void check_mesh_cycles();
  /// The mesh of that name, used by the declaration being checked; invalid, and a diagnostic, if
  /// there is none.
  MeshId find_mesh(const ast::Identifier& name);
  void check_signature(Function& function, std::uint32_t node);
  void check_function(Function& function, std::uint32_t node);
  void check_train(Train& train, std::uint32_t node);
  void check_train_model(Train& train);
  void check_machine(Machine& machine, std::uint32_t node);
  void check_names_item(Names& names, std::uint32_t node);
  /// The axes of a mesh as locals of the body.
  void declare_axes(MeshId mesh);
  void check_recursion();
  bool& sound(Declaration declaration);
  /// Marks a declaration so that not even its statements can be run.
  void refuse(Declaration declaration);
  Declaration declaration_of(std::uint32_t node) const;
  /// Calls `check(node)`; a node with an error is not sound, and not runnable unless the error lies
  /// in a statement.
  template <typename Check>
  void check_node(std::uint32_t node, Check check) {
    const std::size_t errors = sink_.error_count(), elsewhere = errors_elsewhere_;
    check(node);
    if (sink_.error_count() != errors) sound(declaration_of(node)) = false;
    if (sink_.error_count() - errors != errors_elsewhere_ - elsewhere) refuse(declaration_of(node));
  }
  /// Calls `check`; returns whether it found an error of its own, or a type that an error left
  /// unknown.
  template <typename Check>
  bool refuses(Check check) {
    const std::size_t errors = sink_.error_count(), elsewhere = errors_elsewhere_;
    const bool outer = std::exchange(type_unknown_, false);
    check();
    const std::size_t own = sink_.error_count() - errors - (errors_elsewhere_ - elsewhere);
    errors_elsewhere_ += own;
    return std::exchange(type_unknown_, outer) || own > 0;
  }
  /// Declarations that did not parse, or that use an unsound one, are unsound.
  void spread_unsoundness();
  void begin_body(BodySort sort, ModuleId module, const Function* function, std::uint32_t node);

  // worth_reporting.cpp: after syntax errors and files that were not found; not more than fit on a
  // page.
  /// Counts an error; false if enough of its file are shown.
  bool shows(Code code, SourceRange at);
  bool shows_no_more(FileId file) const;
  void report_how_many_more();
  void note_damage();
  bool worth_reporting(Code code, SourceRange at) const;
  /// Whether text between the two did not parse.
  bool damaged(FileId file, std::uint32_t begin, std::uint32_t end) const;
  /// Whether the name, the parameters or the result of a function did not parse.
  bool header_damaged(const ast::FunctionItem& item) const;
  /// Whether text of the item did not parse, or its nesting is a guess.
  bool item_damaged(const ast::Module& module, const ast::Item& item) const;
  /// Whether the damage of an item is in its statements alone.
  bool statements_damaged(const ast::Module& module, const ast::Item& item) const;

  // check_names_item.cpp: the rules that make a line of `names` invertible.
  void names_line(const ast::NamesLine& line);
  void names_facts(const ast::NamesItem& item);
  void names_ignored(const ast::NamesItem& item);
  bool fact_value(ast::Expr& value);

  // check_names.cpp: scopes and names.
  const Declaration* find_declaration(std::string_view name, SourceRange at);
  Local* find_local(std::string_view name);
  Local& declare_local(const ast::Identifier& name, Type type, LocalKind kind);
  void pop_locals(std::size_t count);
  /// Ends the body of a function or a train: warns of unused locals.
  void end_body();
  /// `call`: the call with the name as its callee; null if the name is a value, of the type `hint`.
  void report_unknown_name(std::string_view name, SourceRange at, const ast::CallExpr* call,
                           Type hint = {});
  /// Says which `names` item may be meant where one is wanted: one in sight, or one of the library.
  void suggest_names_item(DiagnosticBuilder& diagnostic, std::string_view name);
  /// If `name` is an axis of a mesh that this body does not see, says so and returns true.
  bool explain_axis(DiagnosticBuilder& diagnostic, std::string_view name) const;
  std::string_view suggestion(std::string_view name, bool callee);
  bool report_unavailable(std::string_view name, SourceRange at);
  std::uint32_t label(std::string_view name) { return context_.symbol(name).value(); }
  void bind_label(const ast::Identifier& name) {
    if (!name.missing()) name.binding = label(name.name);
  }
  Local* use_local(const ast::Identifier& name, Type expected, std::string_view what);
  /// Notes that the declaration being checked mentions a `names` item.
  void use_names(NamesId names, SourceRange at);

  // check_expr.cpp
  Type infer(ast::Expr& expr, Type hint = {});
  Type infer_node(ast::Expr& expr, Type hint);
  Type name(ast::NameExpr& expr, Type hint);
  Type number(const ast::NumberExpr& expr);
  Type list(ast::ExprList elements, Type hint);
  Type comprehension(ast::ComprehensionExpr& expr, Type hint);
  Type unary(ast::UnaryExpr& expr);
  Type binary(ast::BinaryExpr& expr);
  Type comparison(ast::BinaryExpr& expr);
  Type conditional(ast::ConditionalExpr& expr, Type hint);
  Type index(ast::IndexExpr& expr, Type hint);
  void indices(ast::ExprList list, bool* has_list);
  /// Infers, and reports unless the value converts to `expected`; gives the type of the value.
  Type expect(ast::Expr& expr, Type expected, const Place& place);
  bool report_mismatch(const ast::Expr& expr, Type actual, Type expected, const Place& place);
  void bindings(std::span<const ast::Binding> list);
  bool storable(const ast::Expr& value, Type type);

  // check_selector.cpp
  /// Checks an expression in selector position; gives selector, [selector], cursor or error.
  Type selector(ast::Expr& expr);
  Type selector_name(ast::NameExpr& expr);
  /// True for `NAME[..]`, `NAME.part` and the like if NAME is neither local, declared nor built in.
  bool starts_with_label(const ast::Expr& expr);
  void target(const ast::Target& target);
  /// `counted`: it is the argument of `left(...)`.
  void operation(ast::OpExpr& op, bool counted = false);

  // check_call.cpp
  Type call(ast::CallExpr& expr, bool as_statement);
  /// `of_order`: it is `S.order(...)`.
  Type call_function(ast::CallExpr& expr, FunctionId id, bool as_statement, bool of_order = false);
  /// The schedule that the expression names; invalid if it names something else.
  FunctionId named_schedule(ast::Expr& expr);
  /// `S.order` of a schedule, without a call: an error.
  Type part_of_schedule(ast::FieldExpr& expr, FunctionId schedule);
  /// `S.order(...)` of a schedule.
  Type order_of_schedule(ast::CallExpr& expr, const ast::FieldExpr& callee, FunctionId schedule);
  /// An operation as the argument of a transform.
  Type order_operation(ast::OpExpr& op, const Place& place);
  Type call_builtin(ast::CallExpr& expr, std::span<const Signature* const> rows);
  struct ParamView {
    std::string_view name;
    Type type;
    bool optional = false;
    SourceRange range;
  };
  struct Callee {
    std::string_view name;
    SourceRange declared;  // invalid: a builtin
    std::span<const ParamView> params;
    const Signature* row = nullptr;  // of a builtin
  };
  Type argument(const ast::Arg& arg, Type expected, const Place& place, std::optional<Type> known);

  // match_arguments.cpp
  /// Matches arguments to parameters; false when that was an error. `first` is the type of args[0]
  /// when it is known already.
  bool match(ast::CallExpr& expr, const Callee& callee, std::optional<Type> first,
             std::vector<Type>& types);
  struct Matching;

  // check_stmt.cpp
  void block(const ast::Block& body);
  void statements(const ast::Block& body);
  void statement(ast::Stmt& stmt);
  bool allowed(const ast::Stmt& stmt);
  void let(const ast::LetStmt& stmt);
  void assign(const ast::AssignStmt& stmt);
  void expression_statement(const ast::ExprStmt& stmt);
  void return_value(const ast::ReturnStmt& stmt);
  void require(const ast::RequireStmt& stmt);
  void require_condition(ast::Expr& expr);
  bool returns(const ast::Block& body) const;
  bool returns(const ast::Stmt& stmt) const;

  // check_schedule.cpp
  void directive(ast::Stmt& stmt);
  /// Reports `pp[0] dp[1]`, `pp[0] and dp[1]` and `pp[0][1]` in place of devices.
  bool report_several_axes(ast::Expr& devices);
  /// A directive: its subject, its clauses in written order, its settings.
  void line(const ast::DirectiveStmt& stmt);
  void subject(const ast::DirectiveStmt& stmt);
  void extents(std::span<const ast::Pair> into);
  void order(const ast::OrderStmt& stmt);
  void rank(const ast::RankStmt& stmt);
  void cursor(const ast::CursorStmt& stmt);
  void step(const ast::Step& step);
  struct SettingRow {
    std::string_view name;
    Type type;
  };
  void settings(std::span<const ast::Pair> pairs, std::span<const SettingRow> rows,
                std::string_view owner);
  /// The value of `skip_step`: `norm > 10`.
  void norm_test(ast::Expr& expr);
  /// A setting whose value is one of some words.
  void word_of(std::span<const ast::Pair> pairs, const directive::SettingRow& setting);
  static std::span<const SettingRow> train_settings();
  void train_setting(const ast::SettingStmt& stmt);
  void machine_line(const ast::SettingStmt& stmt);
  /// Whether the name of a line is new in its train or machine, and the line is directly in it;
  /// reports an error if not.
  bool is_new_setting(const ast::SettingStmt& stmt, std::string_view owner);

  // check_tensor_decl.cpp
  Type resolve_type(const ast::TypeRef& type);
  enum class DimsOf : std::uint8_t { parameter, input, weight, result };
  void dims(std::span<const ast::Dim> list, DimsOf of);
  void type_dims(const ast::TypeRef& type, DimsOf of);
  void parameter(const ast::Param& param, std::size_t position, const Function& function);
  void input(const ast::InputStmt& stmt);
  void weight(const ast::WeightStmt& stmt);

  ast::Module& syntax() { return program_.modules[body_.module.index()]->syntax; }

  Program& program_;
  Context& context_;
  struct Reported {
    std::size_t errors = 0;
    SourceRange last;
  };
  const std::size_t shown_errors_;  // of a file
  std::map<FileId, Reported> reported_;
  DiagnosticSink& all_;
  SelectedReports sink_;
  // By file: those with text that did not parse.
  std::unordered_map<std::uint32_t, const ast::Module*> damage_;
  // In some file a declaration may not have parsed.
  bool declarations_missing_ = false;
  bool in_damaged_statement_ = false;
  std::vector<SourceRange> damaged_statements_;  // without the blocks inside
  // that some statement, or the model of a train, is refused for
  std::size_t errors_elsewhere_ = 0;
  bool type_unknown_ = false;  // of an expression of the statement being checked
  std::vector<std::unordered_map<std::string_view, Declaration>> scopes_;  // by module
  // Uses by node: functions, params, meshes, trains, machines, names.
  std::vector<std::vector<Call>> calls_;
  std::vector<Local> locals_;
  // of the body: those whose block has ended
  std::vector<Local> ended_;
  // of the train or machine
  std::vector<std::pair<std::string_view, SourceRange>> settings_seen_;
  Body body_;
  // Params of the program that have a type by now.
  std::vector<bool> param_known_;
};

}  // namespace piper::sema
