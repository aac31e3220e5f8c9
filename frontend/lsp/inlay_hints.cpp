// Shapes and numbers beside the names of `let`, `var`, loops and ranks; after a loop the elements
// that it leaves to its cursors.

#include <algorithm>

#include "frontend/ast/source_text.h"
#include "frontend/ast/walk.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/names.h"

namespace piper::lsp {

namespace {

bool is_known(std::string_view value) {
  // A list of selectors says no more than one.
  const std::string_view first = value.starts_with('[') ? value.substr(1) : value;
  return !value.empty() && !first.starts_with("a ") && !first.starts_with("an ") &&
         value.size() <= 60;
}

/// `left(F a, F b) = 0; left(B a) = 1, 0`: on the ranks in their order, those of the same numbers
/// together.
std::string left_text(std::span<const lower::Observations::Left> all) {
  std::vector<std::pair<std::string, std::string>> groups;  // numbers, operations
  for (const lower::Observations::Left& left : all) {
    if (left.seen.values.empty()) continue;
    std::string values;
    for (const std::string& value : left.seen.values)
      values += (values.empty() ? "" : ", ") + value;
    if (left.seen.more) values += ", ...";
    // Both take elements that `left(B a)` counts.
    const Pass pass = left.op->pass == Pass::BI ? Pass::B : left.op->pass;
    const std::string op = std::string(pass_name(pass)) + " " + ast::source_text(*left.op->operand);
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == values; });
    if (known == groups.end()) {
      groups.emplace_back(values, op);
    } else {
      known->second += ", " + op;
    }
  }
  std::string text;
  for (const auto& [values, ops] : groups)
    text += (text.empty() ? "left(" : "; left(") + ops + ") = " + values;
  return text;
}

/// A number that is written there needs no hint.
bool is_written_out(const ast::Expr& expr) {
  return llvm::isa<ast::NumberExpr>(expr) || llvm::isa<ast::StringExpr>(expr) ||
         llvm::isa<ast::BoolExpr>(expr);
}

}  // namespace

json::Value inlay_hint(Request& request) {
  json::Array hints;
  const SourceRange shown = request.range(request.params().get("range"));
  const ast::Module* module = request.module();
  if (module == nullptr) return hints;
  const auto add = [&](SourceRange name, const std::string& label) {
    if (name.end < shown.begin || name.begin > shown.end) return;
    hints.push_back(json::Object{
        {"position", to_json(request.files().line_column(name.file, name.end, request.unit()))},
        {"label", text(label)},
        {"kind", 1},
        {"paddingLeft", false}});
  };
  const auto left_hint = [&](const ast::Stmt& loop) {
    const std::string label = left_text(request.left_behind(loop.range));
    if (!label.empty()) add(loop.range, " " + label);
  };
  const auto value_hint = [&](const ast::Identifier& name, const ast::Expr& value) {
    if (name.missing() || is_written_out(value)) return;
    const std::string seen = request.value_of(value.range);
    if (!is_known(seen)) return;
    // A shape follows the name; a number follows its expression: `let last = p - 1 = 3`.
    if (sema::type_of(value).is_tensor()) return add(name.range, ": " + seen);
    add(value.range, " = " + seen);
  };
  ast::NameVisitor visitor;
  visitor.statements = [&](const ast::Stmt& stmt) {
    if (const auto* let = llvm::dyn_cast<ast::LetStmt>(&stmt);
        let != nullptr && let->names.size() == 1)
      value_hint(let->names[0], *let->value);
    if (const auto* var = llvm::dyn_cast<ast::VarStmt>(&stmt)) value_hint(var->name, *var->value);
    if (const auto* assign = llvm::dyn_cast<ast::AssignStmt>(&stmt);
        assign != nullptr && sema::type_of(*assign->value).is_tensor())
      value_hint(assign->name, *assign->value);
    if (llvm::isa<ast::RepeatStmt>(stmt) || llvm::isa<ast::ForStmt>(stmt)) left_hint(stmt);
    if (const auto* repeat = llvm::dyn_cast<ast::RepeatStmt>(&stmt);
        repeat != nullptr && !is_written_out(*repeat->count)) {
      const std::string seen = request.value_of(repeat->count->range);
      if (is_known(seen)) add(repeat->count->range, " = " + seen);
    }
    if (const auto* result = llvm::dyn_cast<ast::ReturnStmt>(&stmt);
        result != nullptr && sema::type_of(*result->value).is_tensor()) {
      const std::string seen = request.value_of(result->value->range);
      if (is_known(seen)) add(result->value->range, ": " + seen);
    }
  };
  for (const ast::Item* item : module->items) {
    if (item->range.end >= shown.begin && item->range.begin <= shown.end)
      ast::walk_names(*item, visitor);
  }
  return hints;
}

}  // namespace piper::lsp
