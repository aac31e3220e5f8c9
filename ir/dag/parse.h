#pragma once
// Reads the text that `print` writes (README.md in this folder has the grammar by example).
//
// Guarantees: any bytes give a DAG whose ids lie inside its tables, or nothing and a diagnostic with line and column; linear time. What the
// text says is not checked beyond that: `ir/verify` does.
//
//   if (std::optional<Dag> dag = parse(file, context, sink)) verify::verify(*dag, sink);

#include <optional>
#include <string_view>
#include <vector>

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/text_reader.h"

namespace piper::dag {

/// `directives`: gets those that the text holds. `places`: what is wrong with the DAG is to be told in lines of this text.
std::optional<Dag> parse(FileId file, Context& context, DiagnosticSink& sink, std::vector<directive::Directive>* directives = nullptr, directive::TextPlaces* places = nullptr);
/// The text becomes the file `name`.
std::optional<Dag> parse(std::string_view text, Context& context, DiagnosticSink& sink, std::string_view name = "text.pir");

}  // namespace piper::dag
