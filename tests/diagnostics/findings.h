#pragma once
// The diagnostics of a sink as findings of caret expectations: the diagnostic itself, its related
// locations as `note`, its hint as `hint` at the same location.

#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "tests/support/caret_expectations.h"

namespace piper::test {

inline std::vector<Finding> findings(const DiagnosticSink& sink, FileId file) {
  const SourceTable& files = sink.locations().files();
  std::vector<Finding> result;
  auto add = [&](SourceRange range, std::string_view severity, std::string code,
                 std::string message) {
    Finding& finding = result.emplace_back();
    finding.severity = severity;
    finding.code = std::move(code);
    finding.message = std::move(message);
    if (range.file != file) return;  // without a location in this file
    LineColumn begin = files.line_column(file, range.begin),
               end = files.line_column(file, range.end);
    finding.line = static_cast<int>(begin.line);
    finding.column = static_cast<int>(begin.column);
    finding.end_line = static_cast<int>(end.line);
    finding.end_column = static_cast<int>(end.column);
  };
  for (const Diagnostic& diagnostic : sink.sorted()) {
    add(diagnostic.range, severity_name(diagnostic.severity), code_text(diagnostic.code),
        diagnostic.message);
    for (const Related& related : diagnostic.related)
      add(related.range, "note", "", related.message);
    if (!diagnostic.hint.empty()) add(diagnostic.range, "hint", "", diagnostic.hint);
  }
  return result;
}

}  // namespace piper::test
