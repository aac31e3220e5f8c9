#pragma once
// Names of a program: the one at a place, its declaration, its other occurrences.

#include <memory>
#include <optional>
#include <vector>

#include "frontend/lsp/request.h"

namespace piper::lsp {

struct Name {
  SourceRange range;        // at the place
  SourceRange declaration;  // in the table of the request's document
};

/// The name of a local, a declaration, an axis or a dimension at a byte of the file, or ending
/// there.
std::optional<Name> name_at(Request& request, std::uint32_t at);

struct Occurrence {
  std::shared_ptr<service::Document> document;  // whose table the range is of
  SourceRange range;
  bool is_declaration = false;
};

/// The files of the project, the request's own among them.
std::vector<std::string> project_paths(Request& request);

/// Every place of the name in the files of the project, by file.
std::vector<Occurrence> occurrences(Request& request, const Name& name);

/// The file that a `use` brings in; nothing where there is none.
std::optional<FileId> used_file(Request& request, const ast::UseItem& use);

/// The innermost node of each kind around a place.
struct NodesAt {
  const ast::Item* item = nullptr;
  const ast::Stmt* statement = nullptr;
  const ast::Expr* expr = nullptr;
  const ast::CallExpr* call = nullptr;
};
NodesAt nodes_at(const ast::Module& module, std::uint32_t at);

}  // namespace piper::lsp
