#include "frontend/lsp/names.h"

#include <algorithm>
#include <map>

#include "frontend/ast/source_text.h"
#include "frontend/ast/walk.h"

namespace piper::lsp {

namespace {

/// Every name that declares something in the file, whatever uses it.
std::vector<SourceRange> declarations(Request& request, const ast::Module& module) {
  std::vector<SourceRange> ranges;
  for (const service::Symbol& symbol : request.symbols()) ranges.push_back(symbol.selection_range);
  ast::NameVisitor visitor;
  visitor.declares = [&](const ast::Identifier& name) {
    if (!name.missing()) ranges.push_back(name.range);
  };
  std::map<std::uint32_t, SourceRange> dimensions;  // of an item: their first mention declares them
  visitor.dims = [&](const ast::Dim& dim) {
    if (dim.name.binding != ast::kUnbound) dimensions.emplace(dim.name.binding, dim.name.range);
  };
  for (const ast::Item* item : module.items) {
    dimensions.clear();
    ast::walk_names(*item, visitor);
    for (const auto& [slot, range] : dimensions) ranges.push_back(range);
    if (const auto* mesh = llvm::dyn_cast<ast::MeshItem>(item)) {
      for (const ast::Pair& axis : mesh->axes) ranges.push_back(axis.name.range);
    }
  }
  return ranges;
}

}  // namespace

std::optional<Name> name_at(Request& request, std::uint32_t at) {
  const ast::Module* module = request.module();
  if (module == nullptr) return std::nullopt;
  std::optional<Name> found;
  const auto consider = [&](SourceRange range, SourceRange declaration) {
    if (!touches(range, at)) return;
    // If two names touch the place, the one that begins there.
    if (!found || range.begin > found->range.begin) found = Name{range, declaration};
  };
  for (const service::Use& use : request.uses()) consider(use.range, use.declaration);
  for (const SourceRange range : declarations(request, *module)) consider(range, range);
  return found;
}

std::vector<std::string> project_paths(Request& request) {
  std::vector<std::string> paths = request.project().paths();
  const std::string own = service::normal_path(request.document().path());
  if (std::find(paths.begin(), paths.end(), own) == paths.end()) paths.push_back(own);
  return paths;
}

std::vector<Occurrence> occurrences(Request& request, const Name& name) {
  std::vector<Occurrence> list;
  const SourceTable& files = request.files();
  const std::string_view declared_in = files.name(name.declaration.file);
  const bool library = files.is_library(name.declaration.file);
  const auto add_of = [&](const std::shared_ptr<service::Document>& document) {
    if (request.cancellation().requested()) throw Cancelled();
    const auto uses = document->uses(&request.cancellation());
    if (uses.status == service::Status::cancelled) throw Cancelled();
    const SourceTable& table = document->files();
    if (table.size() == 0) return;
    const auto same_file = [&](FileId file) {
      return table.is_library(file) == library &&
             (library
                  ? table.name(file) == declared_in
                  : service::normal_path(table.name(file)) == service::normal_path(declared_in));
    };
    if (same_file(FileId::at(0)) && table.has_text(FileId::at(0))) {
      list.push_back(
          {document, {FileId::at(0), name.declaration.begin, name.declaration.end}, true});
    }
    if (uses.value == nullptr) return;
    for (const service::Use& use : *uses.value) {
      const bool same = same_file(use.declaration.file) &&
                        use.declaration.begin == name.declaration.begin &&
                        use.declaration.end == name.declaration.end;
      if (same && use.range != use.declaration) list.push_back({document, use.range, false});
    }
  };
  for (const std::string& path : project_paths(request))
    add_of(request.project().document(Lane::answers, path));
  return list;
}

std::optional<FileId> used_file(Request& request, const ast::UseItem& use) {
  if (use.path.empty()) return std::nullopt;
  std::string dotted, slashed;
  for (const ast::Identifier& part : use.path) {
    dotted += (dotted.empty() ? "" : ".") + std::string(part.name);
    slashed += (slashed.empty() ? "" : "/") + std::string(part.name);
  }
  const sema::Program* program = request.program();
  for (const auto& module : program->modules) {
    const FileId file = module->syntax.file;
    if (request.files().is_library(file)) {
      if (module->name == dotted) return file;
    } else if (use.path.front().name != "std" && file.index() != 0 &&
               request.files().name(file).ends_with("/" + slashed + ".pipe")) {
      return file;
    }
  }
  return std::nullopt;
}

NodesAt nodes_at(const ast::Module& module, std::uint32_t at) {
  NodesAt nodes;
  for (const ast::Item* item : module.items) {
    if (touches(item->range, at)) nodes.item = item;
  }
  if (nodes.item == nullptr) return nodes;
  ast::NameVisitor visitor;
  visitor.statements = [&](const ast::Stmt& stmt) {
    if (touches(stmt.range, at)) nodes.statement = &stmt;
  };
  visitor.expressions = [&](const ast::Expr& expr) {
    if (!touches(expr.range, at)) return;
    nodes.expr = &expr;
    if (const auto* call = llvm::dyn_cast<ast::CallExpr>(&expr)) nodes.call = call;
  };
  ast::walk_names(*nodes.item, visitor);
  return nodes;
}

}  // namespace piper::lsp
