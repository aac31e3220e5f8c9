// Symbols of a file and of the project.

#include "frontend/lsp/outline.h"

#include "frontend/lsp/methods.h"
#include "llvm/ADT/StringRef.h"

namespace piper::lsp {

/// The protocol's numbers.
int symbol_number(service::SymbolKind kind) {
  switch (kind) {
    case service::SymbolKind::param: return 14;     // constant
    case service::SymbolKind::mesh: return 23;      // struct
    case service::SymbolKind::def: return 12;       // function
    case service::SymbolKind::schedule: return 11;  // interface
    case service::SymbolKind::model: return 5;      // class
    case service::SymbolKind::train: return 2;      // module
    case service::SymbolKind::machine: return 19;   // object
    case service::SymbolKind::names: return 3;      // namespace
  }
  return 13;
}

namespace {

bool matches(llvm::StringRef name, llvm::StringRef query) {
  std::size_t at = 0;
  for (const char c : query.lower()) {
    at = name.lower().find(c, at);
    if (at == std::string::npos) return false;
    ++at;
  }
  return true;
}

constexpr std::size_t kMaxSymbols = 500;

}  // namespace

json::Value document_symbol(Request& request) {
  json::Array symbols;
  for (const service::Symbol& symbol : request.symbols()) {
    symbols.push_back(json::Object{{"name", text(symbol.name)},
                                   {"detail", text(service::symbol_kind_name(symbol.kind))},
                                   {"kind", symbol_number(symbol.kind)},
                                   {"range", request.json(symbol.range)},
                                   {"selectionRange", request.json(symbol.selection_range)}});
  }
  return symbols;
}

json::Value workspace_symbol(Request& request) {
  json::Array symbols;
  const std::string query = request.params().getString("query").value_or("").str();
  const auto add = [&](const std::string& path) {
    if (request.cancellation().requested()) throw Cancelled();
    const std::shared_ptr<service::Document> document =
        request.project().document(Lane::answers, path);
    const auto found = document->symbols(&request.cancellation());
    if (found.value == nullptr) return;
    for (const service::Symbol& symbol : *found.value) {
      if (symbols.size() >= kMaxSymbols || !matches(symbol.name, query)) continue;
      auto location = request.location(document->files(), symbol.selection_range);
      if (!location) continue;
      symbols.push_back(
          json::Object{{"name", text(symbol.name)},
                       {"kind", symbol_number(symbol.kind)},
                       {"location", std::move(*location)},
                       {"containerName", text(document->files().name(symbol.range.file))}});
    }
  };
  for (const std::string& path : request.project().paths()) add(path);
  return symbols;
}

}  // namespace piper::lsp
