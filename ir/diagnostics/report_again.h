#pragma once
// Copies a diagnostic of one sink to another, with its related lines, hint and fixes.

#include "ir/diagnostics/diagnostics.h"

namespace piper {

DiagnosticBuilder report_again(const Diagnostic& diagnostic, DiagnosticSink& to);

}  // namespace piper
