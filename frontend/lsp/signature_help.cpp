// The parameters of the call around the cursor.

#include "frontend/lsp/call_at.h"
#include "frontend/lsp/methods.h"

namespace piper::lsp {

json::Value signature_help(Request& request) {
  const std::uint32_t at = request.offset();
  const std::optional<CallAt> call = call_at(request, at);
  if (!call || call->callees.empty()) return nullptr;
  json::Array signatures;
  std::size_t active = 0;
  for (const Callee& callee : call->callees) {
    json::Array params;
    for (const CalleeParam& param : callee.params) {
      const std::size_t begin = callee.text.find(param.text);
      if (begin == std::string::npos) continue;
      params.push_back(json::Object{{"label", text(param.text)}});
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
