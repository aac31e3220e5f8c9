#pragma once
// Symbols in the client's terms.

#include "frontend/service/symbols.h"

namespace piper::lsp {

/// The protocol's number for the kind of a declaration.
int symbol_number(service::SymbolKind kind);

}  // namespace piper::lsp
