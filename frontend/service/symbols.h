#pragma once
// The declarations of a file, and the names that use them, for editors: outline, definition,
// highlight.

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/sema/program.h"

namespace piper::service {

enum class SymbolKind : std::uint8_t { param, mesh, def, schedule, model, train, machine, names };

/// The keyword.
std::string_view symbol_kind_name(SymbolKind kind);

struct Symbol {
  SymbolKind kind{};
  std::string name;
  SourceRange range;            // of the whole declaration
  SourceRange selection_range;  // of its name
  std::string doc;              // the text of its `///` comment
};

/// A name, and its declaration, which may be in another file.
struct Use {
  SourceRange range;
  SourceRange declaration;
};

/// In text order.
std::vector<Symbol> symbols_of(const ast::Module& module);

/// The names that the analysis resolved in the entry file: locals, params, functions, named
/// arguments, meshes, axes, dimensions, `names`; not labels and builtins.
std::vector<Use> uses_of(const sema::Program& program);

}  // namespace piper::service
