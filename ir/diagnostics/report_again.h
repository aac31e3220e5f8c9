#pragma once
// A diagnostic that was told to one sink, told to another with all that it has.

#include "ir/diagnostics/diagnostics.h"

namespace piper {

DiagnosticBuilder report_again(const Diagnostic& diagnostic, DiagnosticSink& to);

}  // namespace piper
