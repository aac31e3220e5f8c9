// Statements of all bodies: legal places, values, control flow.

#include <algorithm>

#include "frontend/sema/analyser.h"

namespace piper::sema {

namespace {

/// `stage[0].reduce`, with or without further coordinates.
bool is_reduction(const ast::Expr& expr) {
  if (const auto* selector = llvm::dyn_cast<ast::SelectorExpr>(&expr))
    return is_reduction(*selector->head);
  if (const auto* index = llvm::dyn_cast<ast::IndexExpr>(&expr)) return is_reduction(*index->base);
  const auto* field = llvm::dyn_cast<ast::FieldExpr>(&expr);
  return field != nullptr && (field->field.name == "reduce" || is_reduction(*field->base));
}

/// A variable holds a number: `var n = p` counts from the size of the axis.
Type held_by_var(Type type) {
  return type.kind == TypeKind::axis ? Type{TypeKind::integer, type.list} : type;
}

constexpr std::uint8_t bit(BodySort sort) {
  return static_cast<std::uint8_t>(1u << static_cast<unsigned>(sort));
}
constexpr std::uint8_t kAnywhere = 0xFF;
constexpr std::uint8_t kModel = bit(BodySort::model);
constexpr std::uint8_t kStrategy = bit(BodySort::schedule) | bit(BodySort::train);
constexpr std::uint8_t kSteps = bit(BodySort::steps);

struct StatementRow {
  ast::StmtKind kind;
  std::uint8_t where;
  std::string_view home;  // of a statement that is not allowed anywhere
};

constexpr std::string_view kModels = "in a `model`";
constexpr std::string_view kStrategies = "in a `schedule` or a `train`";
constexpr std::string_view kRanks = "in a `rank`, or in a function that gives `steps`";

constexpr StatementRow kRows[] = {
    {ast::StmtKind::error, kAnywhere, ""},
    {ast::StmtKind::let, kAnywhere, ""},
    {ast::StmtKind::var, kAnywhere, ""},
    {ast::StmtKind::assign, kAnywhere, ""},
    {ast::StmtKind::expr, kAnywhere, ""},
    {ast::StmtKind::for_loop, kAnywhere, ""},
    {ast::StmtKind::repeat, kAnywhere, ""},
    {ast::StmtKind::conditional, kAnywhere, ""},
    {ast::StmtKind::return_value, bit(BodySort::value) | kModel | bit(BodySort::order),
     "in a function that gives a value"},
    {ast::StmtKind::require, kAnywhere, ""},
    {ast::StmtKind::setting, bit(BodySort::train) | bit(BodySort::machine), "in a `train`"},
    {ast::StmtKind::input, kModel, kModels},
    {ast::StmtKind::weight, kModel, kModels},
    {ast::StmtKind::region, kModel, kModels},
    {ast::StmtKind::loss, kModel, kModels},
    {ast::StmtKind::directive, kStrategy, kStrategies},
    {ast::StmtKind::order, kStrategy, kStrategies},
    {ast::StmtKind::rank, bit(BodySort::order), "in an `order`, or in a function that gives one"},
    {ast::StmtKind::cursor, kSteps, kRanks},
    {ast::StmtKind::at, kSteps, kRanks},
    {ast::StmtKind::step, kSteps, kRanks},
};
static_assert([] {
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    if (static_cast<std::size_t>(kRows[i].kind) != i) return false;
  }
  return std::size(kRows) == ast::kNumStmtKinds;
}());

constexpr std::string_view kBodyNouns[] = {
    "a function that gives a value", "a model",  "a schedule", "a train", "an order",
    "the steps of a rank",           "a machine"};

}  // namespace

std::vector<std::string_view> statement_keywords(BodySort body) {
  std::vector<std::string_view> words;
  for (const StatementRow& row : kRows) {
    if (const std::string_view word = ast::keyword_of(row.kind);
        !word.empty() && (row.where & bit(body)) != 0)
      words.push_back(word);
  }
  if ((kStrategy & bit(body)) != 0) {
    for (const directive::DirectiveRow& row : directive::directive_rows()) {
      if (row.works()) words.push_back(row.keyword);
    }
  }
  std::sort(words.begin(), words.end());
  return words;
}

bool Analyser::allowed(const ast::Stmt& stmt) {
  const StatementRow& row = kRows[static_cast<std::size_t>(stmt.kind)];
  if ((row.where & bit(body_.sort)) != 0) return true;
  // The sort of a function with a refused result type is unknown.
  if (body_.function != nullptr && body_.function->result.is_error() && (row.where & kSteps) != 0)
    return true;
  std::string what;
  SourceRange at = stmt.range;
  const auto* line = llvm::dyn_cast<ast::DirectiveStmt>(&stmt);
  if (const std::string_view keyword =
          line != nullptr ? line->row().keyword : ast::keyword_of(stmt.kind);
      !keyword.empty()) {
    what = "`" + std::string(keyword) + "`";
    at.end = at.begin + static_cast<std::uint32_t>(keyword.size());
  } else if (const auto* setting = llvm::dyn_cast<ast::SettingStmt>(&stmt)) {
    what = "the setting `" + std::string(setting->setting.name.name) + "`";
    at = setting->setting.name.range;
  } else {
    what = "an operation";
  }
  auto diagnostic = sink_.report(Code::misplaced_statement, at, "{} stands in {}", what,
                                 kBodyNouns[static_cast<std::size_t>(body_.sort)]);
  diagnostic.hint("it belongs {}", row.home);
  return false;
}

void Analyser::block(const ast::Block& body) {
  const std::size_t before = locals_.size();
  ++body_.depth;
  statements(body);
  --body_.depth;
  pop_locals(before);
}

namespace {

/// The beginning of the first block of a statement; `otherwise` if it has none.
std::uint32_t first_block(const ast::Stmt& stmt, std::uint32_t otherwise) {
  const auto begin = [&](const ast::Block* block) {
    return block != nullptr ? block->range.begin + 1 : otherwise;
  };
  switch (stmt.kind) {
    case ast::StmtKind::for_loop: return begin(llvm::cast<ast::ForStmt>(stmt).body);
    case ast::StmtKind::repeat: return begin(llvm::cast<ast::RepeatStmt>(stmt).body);
    case ast::StmtKind::conditional:
      return begin(llvm::cast<ast::IfStmt>(stmt).branches.front().body);
    case ast::StmtKind::region: return begin(llvm::cast<ast::RegionStmt>(stmt).body);
    case ast::StmtKind::rank: return begin(llvm::cast<ast::RankStmt>(stmt).body);
    case ast::StmtKind::order: return begin(llvm::cast<ast::OrderStmt>(stmt).body);
    default: return otherwise;
  }
}

}  // namespace

void Analyser::statements(const ast::Block& body) {
  bool reported = false;
  bool misplaced_step = false;  // reported once; the others of the block are the same mistake
  const ast::Stmt* ended = nullptr;
  for (ast::Stmt* const& stmt : body.statements) {
    if (ended != nullptr && !reported) {
      reported = true;
      sink_.report(Code::unreachable_code, stmt->range, "this is never reached")
          .related(ended->range, "every path returns here");
    }
    const std::size_t next = static_cast<std::size_t>(&stmt - body.statements.data()) + 1;
    std::uint32_t end = body.range.end;
    if (next < body.statements.size()) {
      // Text after a statement that did not parse is an intended part of it.
      const ast::Stmt& after = *body.statements[next];
      end = after.kind == ast::StmtKind::error ? after.range.end : after.range.begin;
    }
    const SourceRange own{stmt->range.file, stmt->range.begin,
                          std::min(end, first_block(*stmt, end))};
    stmt->damaged = damaged(own.file, own.begin, own.end);
    if (stmt->damaged) damaged_statements_.push_back(own);
    const bool outer = in_damaged_statement_;
    in_damaged_statement_ = outer || stmt->damaged;
    const bool same = misplaced_step && stmt->kind == ast::StmtKind::step;
    const bool refused = same || refuses([&] {
                           if (!allowed(*stmt)) {
                             misplaced_step = stmt->kind == ast::StmtKind::step;
                             return;
                           }
                           if (ended == nullptr && returns(*stmt)) ended = stmt;
                           statement(*stmt);
                         });
    stmt->refused = refused || stmt->damaged;
    in_damaged_statement_ = outer;
  }
}

void Analyser::statement(ast::Stmt& stmt) {
  body_.measure_reported = false;
  switch (stmt.kind) {
    case ast::StmtKind::error: break;
    case ast::StmtKind::let: let(llvm::cast<ast::LetStmt>(stmt)); break;
    case ast::StmtKind::var: {
      const auto& node = llvm::cast<ast::VarStmt>(stmt);
      Type type = infer(*node.value);
      if (!type.is_error() && !storable(*node.value, type)) type = kError;
      type = held_by_var(type);
      node.type = type.bits();
      declare_local(node.name, type, LocalKind::var);
      break;
    }
    case ast::StmtKind::assign: assign(llvm::cast<ast::AssignStmt>(stmt)); break;
    case ast::StmtKind::expr: expression_statement(llvm::cast<ast::ExprStmt>(stmt)); break;
    case ast::StmtKind::for_loop: {
      const auto& node = llvm::cast<ast::ForStmt>(stmt);
      const std::size_t before = locals_.size();
      bindings(node.bindings);
      block(*node.body);
      pop_locals(before);
      break;
    }
    case ast::StmtKind::repeat: {
      const auto& node = llvm::cast<ast::RepeatStmt>(stmt);
      expect(*node.count, kInt, {.what = "`repeat`"});
      block(*node.body);
      break;
    }
    case ast::StmtKind::conditional: {
      const auto& node = llvm::cast<ast::IfStmt>(stmt);
      for (const ast::Branch& branch : node.branches) {
        expect(*branch.condition, kBool, {.what = "`if`"});
        block(*branch.body);
      }
      if (node.otherwise != nullptr) block(*node.otherwise);
      break;
    }
    case ast::StmtKind::return_value: return_value(llvm::cast<ast::ReturnStmt>(stmt)); break;
    case ast::StmtKind::require: require(llvm::cast<ast::RequireStmt>(stmt)); break;
    case ast::StmtKind::setting:
      body_.sort == BodySort::machine ? machine_line(llvm::cast<ast::SettingStmt>(stmt))
                                      : train_setting(llvm::cast<ast::SettingStmt>(stmt));
      break;
    case ast::StmtKind::input: input(llvm::cast<ast::InputStmt>(stmt)); break;
    case ast::StmtKind::weight: weight(llvm::cast<ast::WeightStmt>(stmt)); break;
    case ast::StmtKind::region: {
      const auto& node = llvm::cast<ast::RegionStmt>(stmt);
      bind_label(node.name);
      block(*node.body);
      break;
    }
    case ast::StmtKind::loss:
      expect(*llvm::cast<ast::LossStmt>(stmt).value, kTensor, {.what = "`loss`"});
      break;
    default: directive(stmt);
  }
}

void Analyser::let(const ast::LetStmt& stmt) {
  Type type = infer(*stmt.value);
  if (!type.is_error() && !storable(*stmt.value, type)) type = kError;
  if (stmt.names.size() > 1) {
    if (!type.is_error() && !type.list) {
      sink_.report(Code::type_mismatch, stmt.value->range,
                   "this is {}; a `let` of {} names takes a list of {}", with_article(type),
                   stmt.names.size(), stmt.names.size());
      type = kError;
    } else {
      const auto* list = llvm::dyn_cast<ast::ListExpr>(stmt.value);
      const auto spliced = [](const ast::Expr* element) { return type_of(*element).list; };
      if (list != nullptr && !type.is_error() &&
          std::none_of(list->elements.begin(), list->elements.end(), spliced) &&
          list->elements.size() != stmt.names.size()) {
        sink_.report(Code::type_mismatch, stmt.value->range, "a list of {} for {} names",
                     list->elements.size(), stmt.names.size());
      }
    }
    type = type.element();
  }
  for (const ast::Identifier& name : stmt.names) declare_local(name, type, LocalKind::let);
}

void Analyser::assign(const ast::AssignStmt& stmt) {
  if (stmt.name.missing()) {
    infer(*stmt.value);
    return;
  }
  Local* local = find_local(stmt.name.name);
  if (local == nullptr) {
    infer(*stmt.value);
    auto diagnostic =
        sink_.report(Code::unknown_name, stmt.name.range, "there is no `{}` here", stmt.name.name);
    const std::string_view best = suggestion(stmt.name.name, false);
    const bool setting =
        std::any_of(train_settings().begin(), train_settings().end(),
                    [&](const SettingRow& row) { return row.name == stmt.name.name; });
    if (body_.sort == BodySort::train && setting) {
      diagnostic.hint("a setting is written with a colon: `{}: {}`", stmt.name.name,
                      ast::source_text(*stmt.value));
    } else if (!best.empty()) {
      diagnostic.did_you_mean(best, stmt.name.name);
    } else {
      diagnostic.hint("to make it write `let {} = ...`, or `var {} = ...` if it changes",
                      stmt.name.name, stmt.name.name);
    }
    return;
  }
  stmt.name.binding = local->slot;
  const auto position = static_cast<std::size_t>(local - locals_.data());
  if (local->kind != LocalKind::var) {
    auto diagnostic = sink_.report(Code::not_a_variable, stmt.name.range,
                                   "`{}` does not change: it is no `var`", stmt.name.name);
    diagnostic.related(local->range, "`{}` is declared here", stmt.name.name);
    if (local->kind == LocalKind::let) {
      diagnostic.hint("declare it with `var {} = ...`", stmt.name.name);
    } else {
      diagnostic.hint("give its value to one that does: `var x = {}`", stmt.name.name);
    }
    infer(*stmt.value);
    return;
  }
  if (position < body_.own_from) {
    sink_
        .report(Code::assignment_from_inner_body, stmt.name.range, "`{}` belongs to an outer body",
                stmt.name.name)
        .related(local->range, "`{}` is declared here", stmt.name.name)
        .hint(
            "ranks are elaborated independently, so none can change what another one sees: declare the `var` inside");
    infer(*stmt.value);
    return;
  }
  const Type expected = local->type;
  const Place place{.what = "", .name = local->name, .owner = "var", .declared = local->range};
  const Type actual = infer(*stmt.value, expected.kind == TypeKind::selector ? expected : kError);
  local = find_local(stmt.name.name);  // inferring may have moved the locals
  if (expected == Type{TypeKind::any, true} && actual.list) {
    local->type = held_by_var(actual);  // the empty list of its declaration had no element type
    stmt.type = local->type.bits();
    return;
  }
  stmt.type = expected.bits();
  if (converts(actual, expected)) return;
  auto diagnostic =
      sink_.report(Code::type_mismatch, stmt.value->range, "this is {}; the `var` `{}` holds {}",
                   with_article(actual), place.name, with_article(expected));
  diagnostic.related(place.declared, "`{}` is declared here", place.name);
  if (expected == kInt && actual == kFloat)
    diagnostic.hint("begin with a `float`: `var {} = 0.0`", place.name);
}

void Analyser::expression_statement(const ast::ExprStmt& stmt) {
  auto* expr = llvm::dyn_cast<ast::CallExpr>(stmt.value);
  if (expr == nullptr) {
    if (llvm::isa<ast::ErrorExpr>(stmt.value)) return;
    auto diagnostic = sink_.report(Code::unused_value, stmt.range,
                                   "this value is not used; only a call can be a statement");
    if (body_.sort != BodySort::steps) return;
    const std::string text = ast::source_text(*stmt.value);
    if (is_reduction(*stmt.value)) {
      diagnostic.hint(
          "an operation begins with its pass: `B {}`, or `BW {}` where backwards are split", text,
          text);
    } else {
      diagnostic.hint("an operation begins with its pass: `F {}`", text);
    }
    return;
  }
  const Type type = call(*expr, true);
  expr->type = type.bits();
  if (type.is_error() || type == kNone || type.is(TypeKind::steps)) return;
  auto diagnostic = sink_.report(Code::unused_value, stmt.range,
                                 "the `{}` that this gives is not used", type_name(type));
  if (type == kOrder) {
    diagnostic.hint("to apply it write `order {}`", ast::source_text(*stmt.value));
  } else {
    diagnostic.hint("give it a name: `let x = {}`", ast::source_text(*stmt.value));
  }
}

void Analyser::return_value(const ast::ReturnStmt& stmt) {
  if (!body_.first_return.valid()) body_.first_return = stmt.range;
  const Type result = body_.function != nullptr ? body_.function->result : kNone;
  if (body_.function == nullptr || result == kNone) {
    infer(*stmt.value);
    if (body_.function == nullptr) {
      sink_
          .report(Code::unexpected_return, stmt.range,
                  "an `order` block gives its ranks, and returns nothing")
          .hint("for the value of an expression write `order {}`", ast::source_text(*stmt.value));
    } else {
      sink_
          .report(Code::unexpected_return, stmt.range, "`{}` gives no result",
                  body_.function->name())
          .related(body_.function->syntax->name.range, "it is declared here without `->`")
          .hint("write its result: `{}(...) -> tensor[batch, dim]`", body_.function->name());
    }
    return;
  }
  const std::string owner(body_.function->name());
  const std::string what = "the result of `" + owner + "`";
  Place place{.what = what};
  const Type actual = infer(*stmt.value, result);
  if (converts(actual, result)) return;
  report_mismatch(*stmt.value, actual, result, place);
}

void Analyser::require(const ast::RequireStmt& stmt) {
  if (body_.sort == BodySort::schedule || body_.sort == BodySort::train) {
    require_condition(*stmt.condition);
  } else {
    expect(*stmt.condition, kBool, {.what = "`require`"});
  }
}

void Analyser::require_condition(ast::Expr& expr) {
  auto* node = llvm::dyn_cast<ast::BinaryExpr>(&expr);
  if (node != nullptr && node->op == ast::BinaryOp::logical_and) {
    require_condition(*node->left);
    require_condition(*node->right);
    expr.type = kBool.bits();
    return;
  }
  const auto measure = [&](const ast::Expr* side) -> const Signature* {
    const auto* name = llvm::dyn_cast<ast::NameExpr>(side);
    if (name == nullptr || find_local(name->name) != nullptr ||
        scopes_[body_.module.index()].contains(name->name))
      return nullptr;
    const auto rows = find_builtins(name->name, false);
    return !rows.empty() && rows.front()->result.is(TypeKind::measure) ? rows.front() : nullptr;
  };
  const bool compares = node != nullptr && node->op >= ast::BinaryOp::equal &&
                        node->op <= ast::BinaryOp::greater_equal;
  const Signature* left = compares ? measure(node->left) : nullptr;
  const Signature* right = compares ? measure(node->right) : nullptr;
  if ((left == nullptr) == (right == nullptr)) {
    // No measure, or two: an ordinary condition, in which a measure is an error.
    expect(expr, kBool, {.what = "`require`"});
    return;
  }
  infer(left != nullptr ? *node->left : *node->right);
  const Signature& row = left != nullptr ? *left : *right;
  const bool bytes = directive::counts_bytes(*measure_of(row.id));
  expect(left != nullptr ? *node->right : *node->left, bytes ? kBytes : kFloat,
         {.what = bytes ? "a measure of memory or traffic" : "`bubble`"});
  expr.type = kBool.bits();
}

bool Analyser::returns(const ast::Block& body) const {
  return std::any_of(body.statements.begin(), body.statements.end(),
                     [&](const ast::Stmt* stmt) { return returns(*stmt); });
}

bool Analyser::returns(const ast::Stmt& stmt) const {
  if (llvm::isa<ast::ReturnStmt>(&stmt)) return true;
  if (const auto* region = llvm::dyn_cast<ast::RegionStmt>(&stmt)) return returns(*region->body);
  const auto* branches = llvm::dyn_cast<ast::IfStmt>(&stmt);
  if (branches == nullptr || branches->otherwise == nullptr || !returns(*branches->otherwise))
    return false;
  return std::all_of(branches->branches.begin(), branches->branches.end(),
                     [&](const ast::Branch& branch) { return returns(*branch.body); });
}

}  // namespace piper::sema
