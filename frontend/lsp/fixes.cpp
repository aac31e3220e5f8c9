// Code actions: the fixes of diagnostics.

#include "frontend/lsp/diagnostics.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/order_fixes.h"

namespace piper::lsp {

namespace {

bool wants_fixes(const json::Object& context) {
  const json::Array* only = context.getArray("only");
  if (only == nullptr || only->empty()) return true;
  for (const json::Value& kind : *only) {
    if (const auto name = kind.getAsString();
        name && llvm::StringRef("quickfix").starts_with(*name))
      return true;
  }
  return false;
}

/// A fix if the diagnostic is about an order.
std::optional<json::Object> fix_of_order(Request& request, const json::Object* diagnostic) {
  const auto written = diagnostic != nullptr ? diagnostic->getString("code") : std::nullopt;
  const json::Object* range = diagnostic != nullptr ? diagnostic->getObject("range") : nullptr;
  const std::optional<Code> code =
      written && range != nullptr ? parse_code(written->str()) : std::nullopt;
  const std::optional<Fix> fix =
      code ? order_fix(request, *code, request.offset(range->get("start"))) : std::nullopt;
  auto edit =
      fix ? workspace_edit(*fix, request.project(), request.files(), request.unit()) : std::nullopt;
  if (!edit) return std::nullopt;
  return json::Object{{"title", text(fix->title)},
                      {"kind", "quickfix"},
                      {"diagnostics", json::Array{json::Object(*diagnostic)}},
                      {"isPreferred", true},
                      {"edit", std::move(*edit)}};
}

}  // namespace

json::Value code_action(Request& request) {
  json::Array actions;
  const json::Object* context = request.params().getObject("context");
  if (context == nullptr || !wants_fixes(*context)) return actions;
  const json::Array* diagnostics = context->getArray("diagnostics");
  if (diagnostics == nullptr) return actions;
  const std::optional<OpenFile> file = request.project().find(request.document().path());
  for (const json::Value& each : *diagnostics) {
    const json::Object* diagnostic = each.getAsObject();
    if (auto action = fix_of_order(request, diagnostic)) actions.push_back(std::move(*action));
    const json::Object* data = diagnostic != nullptr ? diagnostic->getObject("data") : nullptr;
    const json::Array* fixes = data != nullptr ? data->getArray("fixes") : nullptr;
    // Edits are for the text that was checked.
    if (fixes == nullptr || !file || data->getInteger("version") != file->version) continue;
    for (const json::Value& fix : *fixes) {
      const json::Object* made = fix.getAsObject();
      if (made == nullptr || made->get("title") == nullptr || made->get("edit") == nullptr)
        continue;
      actions.push_back(json::Object{{"title", *made->get("title")},
                                     {"kind", "quickfix"},
                                     {"diagnostics", json::Array{each}},
                                     {"isPreferred", fixes->size() == 1},
                                     {"edit", *made->get("edit")}});
    }
  }
  return actions;
}

}  // namespace piper::lsp
