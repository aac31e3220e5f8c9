#include "frontend/lsp/diagnostics.h"

namespace piper::lsp {

namespace {

int severity_number(Severity severity) {
  switch (severity) {
    case Severity::error: return 1;
    case Severity::warning: return 2;
    case Severity::note: return 3;
  }
  return 1;
}

/// Clients can show unused code paler.
bool is_unnecessary(Code code) {
  return code == Code::unused_local || code == Code::unreachable_code;
}

/// A range of no width is hard to see and to hover over: it gets the character behind it, or the
/// one before.
SourceRange visible(const SourceTable& files, SourceRange range) {
  if (range.begin != range.end) return range;
  const std::string_view text = files.text(range.file);
  if (range.end < text.size() && text[range.end] != '\n' && text[range.end] != '\r') {
    ++range.end;
  } else if (range.begin > 0 && text[range.begin - 1] != '\n') {
    --range.begin;
  }
  return range;
}

}  // namespace

std::optional<json::Object> workspace_edit(const Fix& fix, const Project& project,
                                           const SourceTable& files, ColumnUnit unit) {
  std::map<std::string, json::Array> edits;
  for (const Edit& edit : fix.edits) {
    if (!edit.range.valid() || files.is_library(edit.range.file)) return std::nullopt;
    edits[project.uri(files, edit.range.file)].push_back(
        json::Object{{"range", to_json(files, edit.range, unit)}, {"newText", text(edit.text)}});
  }
  json::Object changes;
  for (auto& [uri, list] : edits) changes[uri] = std::move(list);
  return json::Object{{"changes", std::move(changes)}};
}

std::map<std::string, json::Array> to_json(const std::vector<Diagnostic>& diagnostics,
                                           const Project& project, const SourceTable& files,
                                           const OpenFile& origin, ColumnUnit unit) {
  std::map<std::string, json::Array> found;
  found[origin.uri];
  for (const Diagnostic& diagnostic : diagnostics) {
    std::string uri = origin.uri;
    json::Object range{{"start", to_json(LineColumn())}, {"end", to_json(LineColumn())}};
    if (diagnostic.range.valid() && files.has_text(diagnostic.range.file)) {
      if (const std::string place = project.uri(files, diagnostic.range.file); !place.empty()) {
        uri = place;
        range = to_json(files, visible(files, diagnostic.range), unit);
      }
    }
    json::Array related;
    for (const Related& each : diagnostic.related) {
      if (!each.range.valid() || !files.has_text(each.range.file)) continue;
      const std::string place = project.uri(files, each.range.file);
      if (place.empty()) continue;
      related.push_back(json::Object{
          {"location",
           json::Object{{"uri", text(place)}, {"range", to_json(files, each.range, unit)}}},
          {"message", text(each.message)}});
    }
    std::string message = diagnostic.message;
    if (!diagnostic.hint.empty()) message += "\nhint: " + diagnostic.hint;
    json::Object made{{"range", std::move(range)},
                      {"severity", severity_number(diagnostic.severity)},
                      {"code", code_text(diagnostic.code)},
                      {"source", "piper"},
                      {"message", text(message)}};
    if (!related.empty()) made["relatedInformation"] = std::move(related);
    if (is_unnecessary(diagnostic.code)) made["tags"] = json::Array{1};
    json::Array fixes;
    for (const Fix& fix : diagnostic.fixes) {
      if (auto edit = workspace_edit(fix, project, files, unit))
        fixes.push_back(json::Object{{"title", text(fix.title)}, {"edit", std::move(*edit)}});
    }
    if (!fixes.empty()) {
      // The version of the file that shows the diagnostic, whichever file was checked.
      const std::optional<OpenFile> shown = uri == origin.uri
                                                ? std::optional(origin)
                                                : project.find(files.name(diagnostic.range.file));
      made["data"] =
          json::Object{{"version", shown ? shown->version : 0}, {"fixes", std::move(fixes)}};
    }
    found[uri].push_back(std::move(made));
  }
  return found;
}

}  // namespace piper::lsp
