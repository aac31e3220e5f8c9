// The kind of each word of a text, for clients without a grammar of the language, and the meaning
// of names for all.

#include <algorithm>
#include <map>

#include "frontend/ast/walk.h"
#include "frontend/lsp/describe.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/names.h"
#include "frontend/parse/lexemes.h"

namespace piper::lsp {

namespace {

enum TokenType : std::uint8_t {
  keyword,
  number,
  string,
  comment,
  operator_,
  namespace_,
  type,
  function,
  class_,
  interface,
  variable,
  parameter,
  property,
  enum_member,
  macro
};

constexpr std::string_view kTypes[] = {
    "keyword", "number",    "string",   "comment",   "operator", "namespace",  "type", "function",
    "class",   "interface", "variable", "parameter", "property", "enumMember", "macro"};

enum Modifier : std::uint8_t {
  declaration = 1,
  readonly = 2,
  default_library = 4,
  modification = 8,
  documentation = 16
};
constexpr std::string_view kModifiers[] = {"declaration", "readonly", "defaultLibrary",
                                           "modification", "documentation"};

struct Meaning {
  TokenType type{};
  std::uint8_t modifiers = 0;
};

/// Names by their beginnings.
class Meanings {
 public:
  Meanings(Request& request, const ast::Module& module)
      : request_(request), module_(module), program_(*request.program()) {
    for (const ast::Item* item : module.items) visit(*item);
    for (const service::Use& use : request.uses()) {
      const Meaning* known = at(use.range.begin);
      // The name of an argument is coloured.
      if (known == nullptr || known->type != parameter) set(use.range, meaning_of(use.declaration));
    }
  }

  const Meaning* at(std::uint32_t begin) const {
    const auto found = meanings_.find(begin);
    return found != meanings_.end() ? &found->second : nullptr;
  }

 private:
  void set(SourceRange range, Meaning meaning) {
    if (range.end > range.begin) meanings_.insert_or_assign(range.begin, meaning);
  }

  Meaning meaning_of(SourceRange declared) const {
    if (const ast::Item* item = item_named_at(program_, declared)) {
      const Meaning meaning = of_item(*item);
      return {meaning.type, static_cast<std::uint8_t>(
                                request_.files().is_library(declared.file) ? default_library : 0)};
    }
    const auto known = meanings_.find(declared.begin);
    if (declared.file == module_.file && known != meanings_.end())
      return {known->second.type,
              static_cast<std::uint8_t>(known->second.modifiers & ~declaration)};
    return {enum_member, 0};  // an axis of a mesh of another file
  }

  static Meaning of_item(const ast::Item& item) {
    if (const auto* node = llvm::dyn_cast<ast::FunctionItem>(&item)) {
      return {node->sort == ast::FunctionSort::model ? class_ : node->sort == ast::FunctionSort::schedule ? interface : function, declaration};
    }
    if (llvm::isa<ast::ParamItem>(item)) return {variable, declaration | readonly};
    return {llvm::isa<ast::MeshItem>(item) ? type : variable, declaration};
  }

  void pairs(std::span<const ast::Pair> list) {
    for (const ast::Pair& pair : list) set(pair.name.range, {property, 0});
  }
  void dims(std::span<const ast::Dim> list) {
    for (const ast::Dim& dim : list) set(dim.name.range, {enum_member, 0});
  }
  void type_ref(const ast::TypeRef* ref) {
    if (ref == nullptr) return;
    if (!ref->name.missing()) set(ref->name.range, {type, default_library});
    dims(ref->dims);
    type_ref(ref->element);
  }

  void visit(const ast::Item& item) {
    if (const auto* use = llvm::dyn_cast<ast::UseItem>(&item)) {
      for (const ast::Identifier& part : use->path) set(part.range, {namespace_, 0});
      return;
    }
    ast::NameVisitor visitor;
    visitor.dims = [&](const ast::Dim& dim) { set(dim.name.range, {enum_member, 0}); };
    visitor.declares = [&](const ast::Identifier& name) {
      set(name.range, {variable, declaration});
    };
    visitor.assigns = [&](const ast::Identifier& name) {
      set(name.range, {variable, modification});
    };
    visitor.expressions = [&](const ast::Expr& expr) { expression(expr); };
    visitor.statements = [&](const ast::Stmt& stmt) { statement(stmt); };
    visitor.names_lines = [&](const ast::NamesLine& line) { names_line(line); };
    ast::walk_names(item, visitor);
    if (const ast::Identifier* name = name_of(item)) set(name->range, of_item(item));
    if (const auto* function_item = llvm::dyn_cast<ast::FunctionItem>(&item)) {
      for (const ast::Param& param : function_item->params) {
        set(param.name.range, {parameter, declaration});
        type_ref(param.type);
      }
      type_ref(function_item->result);
    }
    if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(&item)) {
      for (const ast::Pair& axis : mesh->axes) set(axis.name.range, {enum_member, declaration});
    }
  }

  void expression(const ast::Expr& expr) {
    if (const auto* name = llvm::dyn_cast<ast::NameExpr>(&expr)) {
      if (name->referent == ast::Referent::builtin) set(name->range, {function, default_library});
      if (name->referent == ast::Referent::label) set(name->range, {macro, 0});
    } else if (const auto* call = llvm::dyn_cast<ast::CallExpr>(&expr)) {
      if (call->referent == ast::Referent::builtin) {
        const auto* method = llvm::dyn_cast<ast::FieldExpr>(call->callee);
        if (method != nullptr) {
          methods_.push_back(method->field.range);
        } else {
          set(call->callee->range, {function, default_library});
        }
      }
      for (const ast::Arg& arg : call->args) {
        if (!arg.name.missing()) set(arg.name.range, {parameter, 0});
      }
    } else if (const auto* field = llvm::dyn_cast<ast::FieldExpr>(&expr)) {
      const bool method =
          std::find(methods_.begin(), methods_.end(), field->field.range) != methods_.end();
      set(field->field.range, method ? Meaning{function, default_library} : Meaning{property, 0});
    } else if (const auto* selector = llvm::dyn_cast<ast::SelectorExpr>(&expr)) {
      for (const ast::Coordinate& coordinate : selector->coordinates)
        set(coordinate.dimension.range, {property, 0});
    }
  }

  void directive(const ast::DirectiveStmt& line) {
    switch (line.row().subject) {
      case directive::Subject::region:
        set(line.into.front().name.range, {macro, declaration});
        break;
      case directive::Subject::dimension:
        set(line.name.range, {enum_member, 0});
        pairs(line.into);
        break;
      case directive::Subject::targets: break;
      case directive::Subject::named: set(line.name.range, {macro, declaration}); break;
    }
    pairs(line.settings);
  }

  /// The names of a file are strings, holes and all.
  void names_line(const ast::NamesLine& line) {
    pairs(line.facts);
    if (line.kind == ast::NamesLineKind::config || line.kind == ast::NamesLineKind::ignore)
      set(line.range, {keyword, 0});
    if (line.optional)  // its last word, `none`
      set({line.range.file, line.range.end - 4, line.range.end}, {keyword, 0});
    for (const ast::NamesPart& part : line.parts) {
      set(part.name.range, {property, 0});
      set(part.index.range, {enum_member, 0});
    }
    for (const ast::Identifier& parameter : line.last) set(parameter.range, {property, 0});
    for (const ast::NamesDim& dim : line.dims) {
      set(dim.name.range, {enum_member, 0});
      for (const ast::NamesFactor& factor : dim.factors) set(factor.name.range, {enum_member, 0});
    }
    for (const ast::FileDim& dim : line.file_dims) {
      for (const ast::Identifier& name : dim.names)
        set(name.range,
            line.is_tuple && name.name == "of" ? Meaning{keyword, 0} : Meaning{enum_member, 0});
    }
  }

  void statement(const ast::Stmt& stmt) {
    if (const auto* setting = llvm::dyn_cast<ast::SettingStmt>(&stmt))
      set(setting->setting.name.range, {property, 0});
    if (const auto* input = llvm::dyn_cast<ast::InputStmt>(&stmt)) {
      for (const ast::Param& param : input->inputs) type_ref(param.type);
    }
    if (const auto* region = llvm::dyn_cast<ast::RegionStmt>(&stmt))
      set(region->name.range, {macro, declaration});
    if (const auto* line = llvm::dyn_cast<ast::DirectiveStmt>(&stmt)) directive(*line);
  }

  Request& request_;
  const ast::Module& module_;
  const sema::Program& program_;
  std::map<std::uint32_t, Meaning> meanings_;
  std::vector<SourceRange> methods_;
};

}  // namespace

std::span<const std::string_view> semantic_token_types() { return kTypes; }
std::span<const std::string_view> semantic_token_modifiers() { return kModifiers; }

json::Value semantic_tokens(Request& request) {
  json::Array data;
  const ast::Module* module = request.module();
  if (module == nullptr) return json::Object{{"data", std::move(data)}};
  const Meanings meanings(request, *module);
  const std::string_view source = request.text();
  LineColumn last{1, 1};
  for (const parse::Lexeme& lexeme : parse::lexemes(source)) {
    if (request.cancellation().requested()) throw Cancelled();
    Meaning meaning;
    switch (lexeme.kind) {
      case parse::LexemeKind::keyword: meaning = {keyword, 0}; break;
      case parse::LexemeKind::pass: meaning = {macro, default_library}; break;
      case parse::LexemeKind::number: meaning = {number, 0}; break;
      case parse::LexemeKind::string: meaning = {string, 0}; break;
      case parse::LexemeKind::comment:
        meaning = {comment, static_cast<std::uint8_t>(
                                source.substr(lexeme.begin, 3) == "///" ? documentation : 0)};
        break;
      case parse::LexemeKind::sign: meaning = {operator_, 0}; break;
      case parse::LexemeKind::name: {
        const Meaning* known = meanings.at(lexeme.begin);
        if (known == nullptr) continue;
        meaning = *known;
        break;
      }
      case parse::LexemeKind::open:
      case parse::LexemeKind::close:
      case parse::LexemeKind::unknown: continue;
    }
    const LineColumn begin =
        request.files().line_column(request.file(), lexeme.begin, request.unit());
    const LineColumn end = request.files().line_column(request.file(), lexeme.end, request.unit());
    if (end.line != begin.line) continue;
    const std::int64_t lines = static_cast<std::int64_t>(begin.line) - last.line;
    data.push_back(lines);
    data.push_back(static_cast<std::int64_t>(begin.column) - (lines == 0 ? last.column : 1));
    data.push_back(static_cast<std::int64_t>(end.column) - begin.column);
    data.push_back(static_cast<std::int64_t>(meaning.type));
    data.push_back(static_cast<std::int64_t>(meaning.modifiers));
    last = begin;
  }
  return json::Object{{"data", std::move(data)}};
}

}  // namespace piper::lsp
