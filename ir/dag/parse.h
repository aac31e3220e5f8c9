#pragma once
// Reads the text that `print` writes (README.md in this folder has the grammar by example).
//
// Guarantees: any bytes give a DAG whose ids are inside its tables, or nothing and a diagnostic
// with line and column; linear time. The content is checked by `ir/verify`.
//
//   if (std::optional<Dag> dag = parse(file, context, sink)) verify::verify(*dag, sink);

#include <optional>
#include <string_view>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/text/text_reader.h"

namespace piper::dag {

/// `directives` receives those of the text. With `places`, errors in the DAG are reported at lines
/// of this text.
std::optional<Dag> parse(FileId file, Context& context, DiagnosticSink& sink,
                         std::vector<directive::Directive>* directives = nullptr,
                         TextPlaces* places = nullptr);
/// The text becomes the file `name`.
std::optional<Dag> parse(std::string_view text, Context& context, DiagnosticSink& sink,
                         std::string_view name = "text.pir");

}  // namespace piper::dag
