#pragma once
// Source text to AST.
//
// Guarantees: always ends, always gives a module whose ranges lie in the file, and reports at least
// one diagnostic for a text that is not in the language. A text with errors still gives every
// construct that can be recognised, with error nodes for the rest. Reports P1002 and P1010 to
// P1017.

#include "frontend/ast/module.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::parse {

/// `file` must have its text in `files`.
ast::Module parse(const SourceTable& files, FileId file, DiagnosticSink& sink);

}  // namespace piper::parse
