// What is known of the text under the pointer.

#include <algorithm>

#include "frontend/ast/source_text.h"
#include "frontend/lsp/describe.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/names.h"
#include "frontend/parse/lexemes.h"
#include "ir/diagnostics/counted.h"

namespace piper::lsp {

namespace {

struct Shown {
  std::string text;
  SourceRange range;
};

/// The page of a diagnostic; comments in it are for the tests of its examples.
std::string page_of(Code code) {
  std::string page(piper::page(code));
  for (std::size_t begin; (begin = page.find("<!-- ")) != std::string::npos;) {
    const std::size_t end = page.find("-->\n", begin);
    page.erase(begin, end == std::string::npos ? end : end + 4 - begin);
  }
  return page;
}

std::string with_value(std::string value) { return value.empty() ? "" : "\nvalue: `" + value + "`\n"; }

/// A value says nothing where it only names its type.
bool tells(const std::string& value) { return !value.starts_with("a ") && !value.starts_with("an "); }

/// What the name came to: at its declaration or at any use.
std::string value_of_name(Request& request, const Name& name) {
  std::string value = request.value_of(name.range);
  const NodesAt nodes = nodes_at(*request.module(), name.declaration.begin);
  const auto* let = llvm::dyn_cast_or_null<ast::LetStmt>(nodes.statement);
  if (value.empty() && let != nullptr && let->names.size() == 1 && let->names[0].range == name.declaration) value = request.value_of(let->value->range);
  if (const auto* param = llvm::dyn_cast_or_null<ast::ParamItem>(nodes.item); value.empty() && param != nullptr) value = request.value_of(param->value->range);
  for (const service::Use& use : request.uses()) {
    if (!value.empty()) break;
    if (use.declaration == name.declaration) value = request.value_of(use.range);
  }
  return tells(value) ? value : std::string();
}

std::string about_item(const ast::Item& item) {
  std::string text = code_block(headline(item));
  if (!item.doc.empty()) text += "\n" + std::string(item.doc) + "\n";
  if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(&item)) {
    std::int64_t devices = 1;
    for (const ast::Pair& axis : mesh->axes) {
      const auto* number = llvm::dyn_cast<ast::NumberExpr>(axis.value);
      devices = number != nullptr && number->is_integer && number->integer > 0 && number->integer < 1 << 20 && devices > 0 ? devices * number->integer : 0;
    }
    if (devices > 0) text += "\n" + counted(devices, "device") + "\n";
  }
  return text;
}

std::optional<Shown> about_name(Request& request, std::uint32_t at) {
  const std::optional<Name> name = name_at(request, at);
  if (!name) return std::nullopt;
  if (const ast::Item* item = item_named_at(*request.program(), name->declaration)) {
    std::string text = about_item(*item);
    if (llvm::isa<ast::ParamItem>(item)) text += with_value(value_of_name(request, *name));
    return Shown{text, name->range};
  }
  if (name->declaration.file != request.file()) return Shown{code_block(request.text(name->declaration)), name->range};
  return Shown{code_block(describe_local(request, *request.module(), name->declaration)) + with_value(value_of_name(request, *name)), name->range};
}

std::optional<Shown> about_builtin(Request& request, std::uint32_t at) {
  const NodesAt nodes = nodes_at(*request.module(), at);
  const ast::Expr* expr = nodes.expr;
  if (expr == nullptr) return std::nullopt;
  if (const auto* name = llvm::dyn_cast<ast::NameExpr>(expr); name != nullptr && name->referent == ast::Referent::builtin) {
    return Shown{code_block(sema::signature(static_cast<sema::Builtin>(name->target)).text), name->range};
  }
  if (nodes.call == nullptr || nodes.call->referent != ast::Referent::builtin) return std::nullopt;
  const sema::Signature& row = sema::signature(static_cast<sema::Builtin>(nodes.call->target));
  SourceRange range = nodes.call->callee->range;
  if (const auto* method = llvm::dyn_cast<ast::FieldExpr>(nodes.call->callee)) range = method->field.range;
  if (touches(range, at)) return Shown{code_block(row.text), range};
  return std::nullopt;
}

std::optional<Shown> about_word(Request& request, std::uint32_t at) {
  for (const parse::Lexeme& lexeme : parse::lexemes(request.text())) {
    if (lexeme.begin > at) break;
    if (lexeme.end < at || (lexeme.kind != parse::LexemeKind::keyword && lexeme.kind != parse::LexemeKind::pass && lexeme.kind != parse::LexemeKind::name)) continue;
    const SourceRange range{request.file(), lexeme.begin, lexeme.end};
    if (lexeme.kind == parse::LexemeKind::name) {
      // A setting of a train, which no declaration gives.
      const NodesAt nodes = nodes_at(*request.module(), at);
      const auto* setting = llvm::dyn_cast_or_null<ast::SettingStmt>(nodes.statement);
      if (setting == nullptr || setting->setting.name.range != range) continue;
    }
    const std::string_view meaning = meaning_of_word(request.text(range));
    if (!meaning.empty()) return Shown{"**" + std::string(request.text(range)) + "**: " + std::string(meaning) + "\n", range};
  }
  return std::nullopt;
}

std::optional<Shown> about_expr(Request& request, std::uint32_t at) {
  const ast::Expr* expr = nodes_at(*request.module(), at).expr;
  if (expr == nullptr || llvm::isa<ast::ErrorExpr>(expr)) return std::nullopt;
  const sema::Type type = sema::type_of(*expr);
  const std::string value = request.value_of(expr->range);
  const bool known = !type.is_error() && type.kind != sema::TypeKind::none;
  if (!known && value.empty()) return std::nullopt;
  std::string text = code_block(ast::source_text(*expr) + (known ? ": " + std::string(sema::type_name(type)) : ""));
  return Shown{text + (tells(value) ? with_value(value) : ""), expr->range};
}

}  // namespace

json::Value hover(Request& request) {
  const std::uint32_t at = request.offset();
  if (request.module() == nullptr) return nullptr;
  std::optional<Shown> shown = about_builtin(request, at);
  if (!shown) shown = about_name(request, at);
  if (!shown) shown = about_word(request, at);
  if (!shown) shown = about_expr(request, at);
  for (const Found& found : request.project().found(request.document().path())) {
    const SourceRange range{request.file(), found.begin, found.end};
    if (!touches(range, at) || range.end > request.text().size()) continue;
    if (!shown) shown = Shown{"", range};
    shown->text += (shown->text.empty() ? "" : "\n---\n\n") + page_of(found.code);
    break;
  }
  if (!shown) return nullptr;
  return json::Object{{"contents", markdown(shown->text)}, {"range", request.json(shown->range)}};
}

}  // namespace piper::lsp
