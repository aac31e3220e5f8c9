#include "frontend/tools/weight_names.h"

#include <vector>

#include "frontend/lower/names/resolve_names.h"
#include "frontend/service/nearest.h"
#include "ir/diagnostics/report_again.h"

namespace piper::tools {

runtime::WeightMap runtime_map(const WeightMap& map) {
  runtime::WeightMap copied;
  copied.name = map.name;
  for (const MappedWeight& weight : map.weights)
    copied.weights.push_back({weight.parameter, weight.tensor, weight.tensor_dims, weight.offset,
                              weight.factors, weight.strides, weight.parameter_offset,
                              weight.parameter_strides});
  copied.ignored = map.ignored;
  for (const ConfigFact& fact : map.config) copied.config.push_back({fact.key, fact.value});
  return copied;
}

namespace {

/// The mistakes of an item. Lines of the library are no place that the user can change: the first
/// mistake says that the item is one of another model.
void report_misfit(Session& session, const directive::Settings& settings, const sema::Names& item,
                   const DiagnosticSink& found) {
  const SourceTable& files = session.context().locations.files();
  for (const Diagnostic& diagnostic : found.sorted()) {
    if (!files.is_library(item.syntax->name.range.file)) {
      report_again(diagnostic, session.sink());
      continue;
    }
    session.sink()
        .report(diagnostic.code, settings.loc, "`{}` is not for the model of `{}`: {}", item.name(),
                settings.train, diagnostic.message)
        .hint("name another item of `std.names`, or write one for this model");
    return;
  }
}

}  // namespace

std::optional<runtime::WeightMap> map_of_names(Session& session, const lower::Lowered& lowered,
                                               const std::string& name) {
  const sema::Program& program = *session.compilation().program();
  const sema::NamesId id = program.find_names(name);
  if (!id.valid()) {
    std::vector<std::string> known;
    for (const sema::Names& item : program.names) known.emplace_back(item.name());
    auto&& report =
        session.sink().report(Code::unknown_subject, SourceRange(),
                              "neither the program nor `std.names` has a `names` item `{}`", name);
    if (const auto meant = nearest(name, known)) {
      report.hint("did you mean `{}`?", *meant);
    } else {
      report.hint("they have {}", quoted_list(known));
    }
    return std::nullopt;
  }
  const sema::Names& item = program.names[id.index()];
  if (!item.sound) return std::nullopt;  // the analysis has reported its mistakes
  DiagnosticSink found(session.context().locations);
  const auto map =
      lower::resolve_names(item, lowered.model, lowered.arguments, SourceRange(), found);
  if (map) return runtime_map(*map);
  report_misfit(session, lowered.strategy.settings, item, found);
  return std::nullopt;
}

}  // namespace piper::tools
