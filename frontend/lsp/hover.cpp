// Hover: facts about the text under the pointer.

#include <algorithm>

#include "frontend/ast/source_text.h"
#include "frontend/lsp/builtin_meanings.h"
#include "frontend/lsp/call_at.h"
#include "frontend/lsp/describe.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/names.h"
#include "frontend/lsp/subjects.h"
#include "frontend/lsp/weight_paths.h"
#include "frontend/parse/lexemes.h"
#include "ir/byte_text.h"
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

std::string with_value(std::string value, std::span<const std::int64_t> bytes = {}) {
  if (value.empty()) return {};
  std::string text = "\nvalue: `" + value + "`";
  for (const std::int64_t each : bytes) text += ", " + bytes_text(each);
  return text + "\n";
}

/// A value says nothing where it only names its type.
bool is_known(const std::string& value) {
  return !value.starts_with("a ") && !value.starts_with("an ");
}

/// The value of the expression at that place, in words; empty if it adds nothing to the type.
std::string with_value_at(Request& request, SourceRange range) {
  const std::string value = request.value_of(range);
  return is_known(value) ? with_value(value, request.bytes_of(range)) : std::string();
}

/// The value of the name: at its declaration or at any use.
std::string with_value_of_name(Request& request, const Name& name) {
  std::string value = with_value_at(request, name.range);
  const NodesAt nodes = nodes_at(*request.module(), name.declaration.begin);
  const auto* let = llvm::dyn_cast_or_null<ast::LetStmt>(nodes.statement);
  if (value.empty() && let != nullptr && let->names.size() == 1 &&
      let->names[0].range == name.declaration)
    value = with_value_at(request, let->value->range);
  if (const auto* param = llvm::dyn_cast_or_null<ast::ParamItem>(nodes.item);
      value.empty() && param != nullptr)
    value = with_value_at(request, param->value->range);
  for (const service::Use& use : request.uses()) {
    if (!value.empty()) break;
    if (use.declaration == name.declaration) value = with_value_at(request, use.range);
  }
  return value;
}

std::string about_item(const ast::Item& item) {
  std::string text = code_block(headline(item));
  if (!item.doc.empty()) text += "\n" + std::string(item.doc) + "\n";
  if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(&item)) {
    std::int64_t devices = 1;
    for (const ast::Pair& axis : mesh->axes) {
      const auto* number = llvm::dyn_cast<ast::NumberExpr>(axis.value);
      devices = number != nullptr && number->is_integer && number->integer > 0 &&
                        number->integer < 1 << 20 && devices > 0
                    ? devices * number->integer
                    : 0;
    }
    if (devices > 0) text += "\n" + counted(devices, "device") + "\n";
  }
  return text;
}

/// The figures and the grid of its plan, at the sizes of a check. Nothing if it has none, or one
/// that takes long.
std::string about_plan(Request& request, const std::string& name) {
  constexpr std::size_t kWidest = 160, kMaxRows = 8;
  try {
    const Subject subject = subject_called(request, name);
    if (!is_small(request, subject)) return {};
    const std::shared_ptr<const service::Plan> plan = plan_of(request, subject);
    std::string text = "\n" + measures_text(subject, *plan) + "\n";
    const std::string grid = grid_of(*plan);
    const bool fits = grid.find('\n') <= kWidest && std::count(grid.begin(), grid.end(), '\n') <=
                                                        static_cast<std::ptrdiff_t>(kMaxRows);
    return fits ? text + "```text\n" + grid + "```\n" : text;
  } catch (const Refusal&) {
    return {};  // its diagnostics say why
  }
}

/// The train whose regions are meant at a place: the one around it, or the chosen one, or the
/// first.
std::string train_at(Request& request, std::uint32_t at) {
  const std::string chosen = request.project().chosen_train();
  std::string first;
  for (const service::Symbol& symbol : request.symbols()) {
    if (symbol.kind != service::SymbolKind::train) continue;
    if (touches(symbol.range, at)) return symbol.name;
    if (first.empty() || symbol.name == chosen) first = symbol.name;
  }
  return first;
}

/// The cost of the regions of that name; nothing if no train of the file has one.
std::string about_region(Request& request, std::uint32_t at, std::string_view region) {
  const std::string train = train_at(request, at);
  if (train.empty()) return {};
  try {
    const std::string text = region_text(request, subject_called(request, train), region);
    return text.empty() ? text : "\n" + text + "\n";
  } catch (const Refusal&) {
    return {};
  }
}

std::string about_subject(Request& request, const ast::Item& item) {
  if (const auto* train = llvm::dyn_cast<ast::TrainItem>(&item))
    return about_plan(request, std::string(train->name.name));
  const auto* function = llvm::dyn_cast<ast::FunctionItem>(&item);
  if (function == nullptr || function->sort != ast::FunctionSort::schedule) return {};
  const std::string name(function->name.name);
  if (!request.files().is_library(item.range.file))
    return item.range.file == request.file() ? about_plan(request, name) : std::string();
  Request of_library = request.about(request.project().document(Lane::answers, name));
  return about_plan(of_library, name);
}

std::optional<Shown> about_name(Request& request, std::uint32_t at) {
  const std::optional<Name> name = name_at(request, at);
  if (!name) return std::nullopt;
  if (const ast::Item* item = item_named_at(*request.program(), name->declaration)) {
    std::string text = about_item(*item);
    if (llvm::isa<ast::ParamItem>(item)) text += with_value_of_name(request, *name);
    text += about_subject(request, *item);
    const auto* function = llvm::dyn_cast<ast::FunctionItem>(item);
    if (function != nullptr && function->sort == ast::FunctionSort::model)
      text += about_region(request, at, function->name.name);
    return Shown{text, name->range};
  }
  if (name->declaration.file != request.file())
    return Shown{code_block(request.text(name->declaration)), name->range};
  return Shown{code_block(describe_local(request, *request.module(), name->declaration)) +
                   with_value_of_name(request, *name),
               name->range};
}

std::string about_signature(const sema::Signature& row) {
  return code_block(row.text) + "\n" + std::string(meaning_of(row.id)) + "\n";
}

/// `lr` in `sgd(lr: 0.1)`.
std::optional<Shown> about_argument(Request& request, std::uint32_t at) {
  const ast::CallExpr* call = nodes_at(*request.module(), at).call;
  if (call == nullptr) return std::nullopt;
  const auto arg = std::find_if(call->args.begin(), call->args.end(), [&](const ast::Arg& each) {
    return !each.name.missing() && touches(each.name.range, at);
  });
  if (arg == call->args.end()) return std::nullopt;
  const auto* method = llvm::dyn_cast<ast::FieldExpr>(call->callee);
  const auto* function = llvm::dyn_cast<ast::NameExpr>(call->callee);
  const std::string_view callee = method != nullptr     ? method->field.name
                                  : function != nullptr ? function->name
                                                        : std::string_view();
  for (const Callee& each : callees_of(request, callee, method != nullptr)) {
    for (const CalleeParam& param : each.params) {
      if (param.name == arg->name.name)
        return Shown{
            code_block(param.text) + (param.meaning.empty() ? "" : "\n" + param.meaning + "\n"),
            arg->name.range};
    }
  }
  return std::nullopt;
}

std::optional<Shown> about_builtin(Request& request, std::uint32_t at) {
  const NodesAt nodes = nodes_at(*request.module(), at);
  const ast::Expr* expr = nodes.expr;
  if (expr == nullptr) return std::nullopt;
  if (const auto* name = llvm::dyn_cast<ast::NameExpr>(expr);
      name != nullptr && name->referent == ast::Referent::builtin) {
    return Shown{about_signature(sema::signature(static_cast<sema::Builtin>(name->target))),
                 name->range};
  }
  if (nodes.call == nullptr || nodes.call->referent != ast::Referent::builtin) return std::nullopt;
  const sema::Signature& row = sema::signature(static_cast<sema::Builtin>(nodes.call->target));
  SourceRange range = nodes.call->callee->range;
  if (const auto* method = llvm::dyn_cast<ast::FieldExpr>(nodes.call->callee))
    range = method->field.range;
  if (touches(range, at)) return Shown{about_signature(row), range};
  return std::nullopt;
}

std::string about_keyword(std::string_view word) {
  const std::string_view meaning = meaning_of_word(word);
  return meaning.empty() ? std::string()
                         : "**" + std::string(word) + "**: " + std::string(meaning) + "\n";
}

/// The meaning of the setting name before a `:`: of a train, a machine or a directive.
std::string about_setting(Request& request, SourceRange name) {
  const ast::Stmt* stmt = nodes_at(*request.module(), name.begin).statement;
  if (stmt == nullptr) return {};
  const std::string_view word = request.text(name);
  if (const auto* setting = llvm::dyn_cast<ast::SettingStmt>(stmt))
    return setting->setting.name.range == name ? about_keyword(word) : std::string();
  if (!llvm::StringRef(request.text().substr(name.end)).ltrim().starts_with(":")) return {};
  const auto* line = llvm::dyn_cast<ast::DirectiveStmt>(stmt);
  const directive::SettingRow* const setting =
      line != nullptr ? directive::find_setting(line->directive, word) : nullptr;
  return setting != nullptr ? code_block("with " + setting_text(*setting)) + "\n" +
                                  std::string(setting->meaning) + "\n"
                            : std::string();
}

std::optional<Shown> about_word(Request& request, std::uint32_t at) {
  for (const parse::Lexeme& lexeme : parse::lexemes(request.text())) {
    if (lexeme.begin > at) break;
    if (lexeme.end < at ||
        (lexeme.kind != parse::LexemeKind::keyword && lexeme.kind != parse::LexemeKind::pass &&
         lexeme.kind != parse::LexemeKind::name))
      continue;
    const SourceRange range{request.file(), lexeme.begin, lexeme.end};
    const std::string_view word = request.text(range);
    const std::string text = lexeme.kind == parse::LexemeKind::name ? about_setting(request, range)
                                                                    : about_keyword(word);
    if (text.empty()) continue;
    return Shown{text + (word == "model" ? about_region(request, at, word) : std::string()), range};
  }
  return std::nullopt;
}

/// `stage` in `place stage[s] on p[s]`, `region head { ... }`
std::optional<Shown> about_label(Request& request, std::uint32_t at) {
  const NodesAt nodes = nodes_at(*request.module(), at);
  SourceRange range;
  const auto consider = [&](const ast::Identifier& name) {
    if (!name.missing() && touches(name.range, at)) range = name.range;
  };
  if (const auto* name = llvm::dyn_cast_or_null<ast::NameExpr>(nodes.expr);
      name != nullptr && name->referent == ast::Referent::label)
    range = name->range;
  if (const auto* region = llvm::dyn_cast_or_null<ast::RegionStmt>(nodes.statement))
    consider(region->name);
  if (const auto* line = llvm::dyn_cast_or_null<ast::DirectiveStmt>(nodes.statement);
      line != nullptr && line->row().subject == directive::Subject::region)
    consider(line->into.front().name);
  if (!range.valid()) return std::nullopt;
  const std::string_view name = request.text(range);
  const std::string text = about_region(request, at, name);
  if (text.empty()) return std::nullopt;
  return Shown{code_block("region " + std::string(name)) + text, range};
}

/// A parameter in a line of `names`: its weights in the models.
std::optional<Shown> about_parameter(Request& request, std::uint32_t at) {
  const auto* names = llvm::dyn_cast_or_null<ast::NamesItem>(nodes_at(*request.module(), at).item);
  if (names == nullptr) return std::nullopt;
  for (const ast::NamesLine& line : names->lines) {
    for (const ast::Identifier& parameter : line.last) {
      if (parameter.missing() || !touches(parameter.range, at)) continue;
      std::vector<std::string> found;
      for (const WeightPath& path : weight_paths(*request.program())) {
        const bool same =
            path.weight->name.name == parameter.name &&
            std::equal(path.parts.begin(), path.parts.end(), line.parts.begin(), line.parts.end(),
                       [](const WeightPath::Part& part, const ast::NamesPart& written) {
                         return part.name == written.name.name;
                       });
        std::string text =
            "weight " + std::string(parameter.name) + ast::source_text(path.weight->dims);
        if (same && std::find(found.begin(), found.end(), text) == found.end())
          found.push_back(std::move(text));
      }
      std::string text;
      for (const std::string& headline : found) text += code_block(headline);
      if (!text.empty()) return Shown{text, parameter.range};
    }
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
  std::string text = code_block(ast::source_text(*expr) +
                                (known ? ": " + std::string(sema::type_name(type)) : ""));
  return Shown{text + with_value_at(request, expr->range), expr->range};
}

}  // namespace

json::Value hover(Request& request) {
  const std::uint32_t at = request.offset();
  if (request.module() == nullptr) return nullptr;
  std::optional<Shown> shown = about_argument(request, at);
  if (!shown) shown = about_builtin(request, at);
  if (!shown) shown = about_name(request, at);
  if (!shown) shown = about_word(request, at);
  if (!shown) shown = about_label(request, at);
  if (!shown) shown = about_parameter(request, at);
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
