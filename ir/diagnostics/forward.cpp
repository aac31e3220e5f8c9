#include "ir/diagnostics/forward.h"

#include <map>

#include "ir/diagnostics/report_again.h"

namespace piper {

static constexpr std::size_t kShownPerPlace = 1;

DiagnosticBuilder report_again(const Diagnostic& diagnostic, DiagnosticSink& to) {
  DiagnosticBuilder builder =
      to.report(diagnostic.code, diagnostic.range, "{}", diagnostic.message);
  for (const Related& related : diagnostic.related)
    builder.related(related.range, "{}", related.message);
  if (!diagnostic.hint.empty()) builder.hint("{}", diagnostic.hint);
  for (const Fix& fix : diagnostic.fixes) builder.fix(fix);
  return builder;
}

void forward(const DiagnosticSink& from, DiagnosticSink& to) {
  if (from.empty()) return;
  const std::vector<Diagnostic> found = from.sorted();
  struct Place {
    std::size_t errors = 0, reported = 0;
  };
  std::map<std::pair<Code, SourceRange>, Place> places;
  for (const Diagnostic& diagnostic : found) ++places[{diagnostic.code, diagnostic.range}].errors;
  std::size_t shown = 0, hidden = 0;
  SourceRange last_hidden;
  for (const Diagnostic& diagnostic : found) {
    const bool error = diagnostic.severity == Severity::error;
    std::size_t more = 0;
    if (error && diagnostic.range.valid()) {
      Place& place = places[{diagnostic.code, diagnostic.range}];
      if (place.reported == kShownPerPlace) continue;
      if (++place.reported == kShownPerPlace) more = place.errors - place.reported;
    }
    if (error && shown == kShownErrors) {
      hidden += more + 1;
      last_hidden = diagnostic.range;
      continue;
    }
    shown += error;
    DiagnosticBuilder builder = report_again(diagnostic, to);
    if (more > 0)
      builder.related(diagnostic.range, "and {} more of this kind from the same line", more);
  }
  report_not_shown(to, last_hidden, hidden, "train or schedule");
}

}  // namespace piper
