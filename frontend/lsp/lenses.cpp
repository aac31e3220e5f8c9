// Lines above trains and schedules: the measures of their plans, and commands. The measures are
// computed when the client shows a lens.

#include "frontend/lsp/methods.h"
#include "frontend/lsp/subjects.h"

namespace piper::lsp {

namespace {

json::Object command(std::string_view title, std::string_view name, const std::string& uri,
                     std::string_view subject) {
  return json::Object{
      {"title", text(title)},
      {"command", text(name)},
      {"arguments", json::Array{json::Object{{"uri", text(uri)}, {"name", text(subject)}}}}};
}

/// Beside the measures; commands.cpp has their functions.
constexpr std::pair<const char*, const char*> kCommands[] = {{"show grid", "piper.grid"},
                                                             {"show page", "piper.open"},
                                                             {"check", "piper.check"},
                                                             {"train", "piper.train"}};

}  // namespace

json::Value code_lens(Request& request) {
  json::Array lenses;
  const std::optional<OpenFile> file = request.project().find(request.document().path());
  const std::string uri = file ? file->uri : uri_of(request.document().path());
  for (const service::Symbol& symbol : request.symbols()) {
    if (!is_subject(symbol)) continue;
    const json::Object range = request.json(symbol.selection_range);
    lenses.push_back(
        json::Object{{"range", json::Object(range)},
                     {"data", json::Object{{"uri", text(uri)}, {"name", text(symbol.name)}}}});
    for (const auto& [title, name] : kCommands) {
      const bool trains = name == std::string_view("piper.train");
      if (trains && symbol.kind != service::SymbolKind::train) continue;
      lenses.push_back(json::Object{{"range", json::Object(range)},
                                    {"command", command(title, name, uri, symbol.name)}});
    }
  }
  return lenses;
}

json::Value code_lens_resolve(Request& request) {
  json::Object lens = request.params();
  const json::Object* data = request.params().getObject("data");
  std::string title, uri;
  if (data != nullptr) uri = data->getString("uri").value_or("").str();
  std::string name;
  try {
    const Subject subject = subject_of(request, data);
    name = subject.name;
    title = measures_text(subject, *plan_of(request, subject));
  } catch (const Refusal&) {
    title = "no plan";  // its diagnostics say why
  }
  lens["command"] = command(title, "piper.grid", uri, name);
  return lens;
}

}  // namespace piper::lsp
