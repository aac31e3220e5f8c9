// The parameters of the call around the cursor, or the settings of the directive.

#include "frontend/lsp/call_at.h"
#include "frontend/lsp/describe.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/statement_at.h"

namespace piper::lsp {

namespace {

json::Object parameter(std::string_view label, std::string_view meaning) {
  json::Object made{{"label", text(label)}};
  if (!meaning.empty()) made["documentation"] = markdown(meaning);
  return made;
}

/// `replicate ... with bucket: bytes = 25MiB, ...`
json::Value settings_help(Request& request, std::uint32_t at) {
  const StatementAt statement = statement_at(request, at);
  if (statement.nowhere || statement.depth() > 0 || !statement.has("with")) return nullptr;
  // The one that is being written: behind the last comma, or behind `with`.
  std::string_view written;
  for (std::size_t i = statement.words.size(); i-- > 0 && statement.word(i) != ",";) {
    if (statement.word(i) == ":" && i > 0) written = statement.word(i - 1);
    if (statement.word(i) == "with") break;
  }
  std::string label = std::string(statement.first()) + " ... with ";
  json::Array params;
  json::Object help{{"activeSignature", 0}};
  for (const directive::SettingRow& setting : settings_of(statement.first())) {
    if (setting.name == written) help["activeParameter"] = static_cast<std::int64_t>(params.size());
    const std::string declared = setting_text(setting);
    label += (params.empty() ? "" : ", ") + declared;
    params.push_back(parameter(declared, setting.meaning));
  }
  if (params.empty()) return nullptr;
  help["signatures"] =
      json::Array{json::Object{{"label", text(label)}, {"parameters", std::move(params)}}};
  return help;
}

}  // namespace

json::Value signature_help(Request& request) {
  const std::uint32_t at = request.offset();
  const std::optional<CallAt> call = call_at(request, at);
  if (!call || call->callees.empty()) return settings_help(request, at);
  json::Array signatures;
  std::size_t active = 0;
  for (const Callee& callee : call->callees) {
    json::Array params;
    for (const CalleeParam& param : callee.params) {
      const std::size_t begin = callee.text.find(param.text);
      if (begin == std::string::npos) continue;
      params.push_back(parameter(param.text, param.meaning));
    }
    json::Object made{{"label", text(callee.text)}, {"parameters", std::move(params)}};
    if (!callee.doc.empty()) made["documentation"] = markdown(callee.doc);
    signatures.push_back(std::move(made));
  }
  json::Object help{{"signatures", std::move(signatures)}, {"activeSignature", 0}};
  const std::vector<CalleeParam>& params = call->callees.front().params;
  active = params.size();
  if (!call->argument_name.empty()) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (params[i].name == call->argument_name) active = i;
    }
  } else if (call->argument < params.size()) {
    active = call->argument;
  }
  if (active < params.size()) help["activeParameter"] = static_cast<std::int64_t>(active);
  return help;
}

}  // namespace piper::lsp
