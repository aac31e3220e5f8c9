#include "frontend/lsp/rename_rules.h"

#include <algorithm>

#include "frontend/ast/walk.h"

namespace piper::lsp {

namespace {

/// A name in whichever table.
bool same_place(const SourceTable& a_files, SourceRange a, const SourceTable& b_files,
                SourceRange b) {
  return a.begin == b.begin && a.end == b.end &&
         service::normal_path(a_files.name(a.file)) == service::normal_path(b_files.name(b.file));
}

/// Calls `visit(program, files)` for each file of the project with the files that it uses.
template <typename Visit>
void each_program(Request& request, const Visit& visit) {
  for (const std::string& path : project_paths(request)) {
    if (request.cancellation().requested()) throw Cancelled();
    const std::shared_ptr<service::Document> document =
        request.project().document(Lane::answers, path);
    const auto program = document->program(&request.cancellation());
    if (program.status == service::Status::cancelled) throw Cancelled();
    if (program.value != nullptr) visit(*program.value, document->files());
  }
}

/// The function of the program that is declared there; null: none.
const sema::Function* function_at(const sema::Program& program, const SourceTable& program_files,
                                  const SourceTable& files, SourceRange name) {
  const auto found = std::find_if(
      program.functions.begin(), program.functions.end(), [&](const sema::Function& each) {
        return same_place(program_files, each.syntax->name.range, files, name);
      });
  return found != program.functions.end() ? &*found : nullptr;
}

bool is_model(const ast::Item& item) {
  const auto* function = llvm::dyn_cast<ast::FunctionItem>(&item);
  return function != nullptr && function->sort == ast::FunctionSort::model;
}

/// The first mention of a region or dimension of that name in directives and orders of a file;
/// invalid if there is none.
SourceRange named_by_directive(const ast::Module& module, std::string_view name) {
  SourceRange first;
  const auto consider = [&](std::string_view text, SourceRange range) {
    if (text == name && (!first.valid() || range.begin < first.begin)) first = range;
  };
  const auto identifier = [&](const ast::Identifier& each) { consider(each.name, each.range); };
  ast::NameVisitor visitor;
  visitor.expressions = [&](const ast::Expr& expr) {
    if (const auto* label = llvm::dyn_cast<ast::NameExpr>(&expr);
        label != nullptr && label->referent == ast::Referent::label)
      consider(label->name, label->range);
    if (const auto* field = llvm::dyn_cast<ast::FieldExpr>(&expr);
        field != nullptr && field->field.binding != ast::kUnbound)
      identifier(field->field);
    if (const auto* selector = llvm::dyn_cast<ast::SelectorExpr>(&expr)) {
      for (const ast::Coordinate& coordinate : selector->coordinates)
        identifier(coordinate.dimension);
    }
  };
  visitor.statements = [&](const ast::Stmt& stmt) {
    const auto* line = llvm::dyn_cast<ast::DirectiveStmt>(&stmt);
    if (line == nullptr) return;
    if (line->row().subject == directive::Subject::dimension) identifier(line->name);
    for (const ast::Pair& pair : line->into) identifier(pair.name);
    for (const ast::Identifier& dim : line->dims) identifier(dim);
  };
  for (const ast::Item* item : module.items) {
    if (!is_model(*item)) ast::walk_names(*item, visitor);
  }
  return first;
}

/// The same in the project, as `main.pipe:31`, or only in programs that have the model of that
/// name; empty: nowhere.
std::string directive_with(Request& request, std::string_view label, const Name* of_model) {
  std::string place;
  each_program(request, [&](const sema::Program& program, const SourceTable& files) {
    if (!place.empty() || (of_model != nullptr && function_at(program, files, request.files(),
                                                              of_model->declaration) == nullptr))
      return;
    for (const auto& module : program.modules) {
      const SourceRange found = named_by_directive(module->syntax, label);
      if (!place.empty() || !found.valid()) continue;
      place = std::string(files.name(found.file)) + ":" +
              std::to_string(files.line_column(found.file, found.begin).line);
    }
  });
  return place;
}

/// Whether the function or one that it calls declares a weight, or draws random numbers.
bool has_keys(const sema::Program& program, std::uint32_t function, std::vector<bool>& seen) {
  if (seen[function]) return false;
  seen[function] = true;
  bool found = false;
  ast::NameVisitor visitor;
  visitor.statements = [&](const ast::Stmt& stmt) {
    found = found || llvm::isa<ast::WeightStmt>(stmt);
  };
  visitor.calls = [&](const ast::CallExpr& call) {
    found = found ||
            (call.referent == ast::Referent::builtin &&
             call.target == static_cast<std::uint32_t>(sema::Builtin::dropout)) ||
            (call.referent == ast::Referent::function && has_keys(program, call.target, seen));
  };
  ast::walk_names(*program.functions[function].syntax, visitor);
  return found;
}

/// Weights and random numbers are keyed by the models on their call path, without the one that a
/// train calls: `block.3.attention.0.q`.
bool is_in_keys(Request& request, const Name& name) {
  bool is_in = false;
  each_program(request, [&](const sema::Program& program, const SourceTable& files) {
    const sema::Function* model =
        is_in ? nullptr : function_at(program, files, request.files(), name.declaration);
    if (model == nullptr) return;
    const auto id = static_cast<std::uint32_t>(model - program.functions.data());
    std::vector<bool> seen(program.functions.size());
    if (!has_keys(program, id, seen)) return;
    ast::NameVisitor visitor;
    visitor.calls = [&](const ast::CallExpr& call) {
      is_in = is_in || (call.referent == ast::Referent::function && call.target == id);
    };
    for (const sema::Function& caller : program.functions) {
      if (caller.sort() == ast::FunctionSort::model) ast::walk_names(*caller.syntax, visitor);
    }
  });
  return is_in;
}

/// The file that declares it.
Request about_declaration(Request& request, const Name& name) {
  const std::string path(request.files().name(name.declaration.file));
  return request.about(request.project().document(Lane::answers, path));
}

bool is_model(Request& request, const Name& name) {
  const sema::Program* program = request.program();
  const sema::Function* function =
      program != nullptr ? function_at(*program, request.files(), request.files(), name.declaration)
                         : nullptr;
  return function != nullptr && function->sort() == ast::FunctionSort::model;
}

/// The reason for a declaration inside an item, in the request's own file.
std::string why_local_fixed(Request& request, SourceRange declaration) {
  bool dimension = false, input = false, weight = false;
  std::vector<SourceRange> uses{declaration};
  for (const service::Use& use : request.uses()) {
    if (use.declaration == declaration) uses.push_back(use.range);
  }
  ast::NameVisitor visitor;
  // A parameter gives a dimension of its name the size.
  visitor.dims = [&](const ast::Dim& dim) {
    dimension = dimension || std::find(uses.begin(), uses.end(), dim.name.range) != uses.end();
  };
  visitor.statements = [&](const ast::Stmt& stmt) {
    if (const auto* inputs = llvm::dyn_cast<ast::InputStmt>(&stmt)) {
      for (const ast::Param& each : inputs->inputs) input = input || each.name.range == declaration;
    }
    if (const auto* weights = llvm::dyn_cast<ast::WeightStmt>(&stmt)) {
      for (const ast::WeightDecl& each : weights->weights)
        weight = weight || each.name.range == declaration;
    }
  };
  for (const ast::Item* item : request.module()->items) ast::walk_names(*item, visitor);
  if (dimension)
    return "dimensions are known by their names: data, directives and other models refer to the same one";
  if (input) return "inputs are known by their names: data finds its columns by them";
  if (weight) return "weights are known by their names: a weight's name decides its first values";
  return {};
}

}  // namespace

std::string why_fixed(Request& request, const Name& name) {
  if (request.files().is_library(name.declaration.file))
    return "the standard library declares this name";
  Request declaring = about_declaration(request, name);
  if (declaring.module() == nullptr) return {};
  const SourceRange declaration{declaring.file(), name.declaration.begin, name.declaration.end};
  if (const std::string why = why_local_fixed(declaring, declaration); !why.empty()) return why;
  if (!is_model(request, name)) return {};
  if (const std::string place = directive_with(request, request.text(name.declaration), &name);
      !place.empty()) {
    return "regions are known by the name of their model: directives name it at " + place;
  }
  if (is_in_keys(request, name))
    return "weights and dropout are known by the models that they are in: first values and random numbers would be others";
  return {};
}

std::string why_not(Request& request, const Name& name, std::string_view wanted) {
  if (!is_model(request, name)) return {};
  const std::string place = directive_with(request, wanted, nullptr);
  if (place.empty()) return {};
  return "regions are known by the name of their model, and directives mean something else by `" +
         std::string(wanted) + "` at " + place;
}

}  // namespace piper::lsp
