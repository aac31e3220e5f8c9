// Completion at the cursor.

#include <algorithm>

#include "frontend/lsp/candidates.h"
#include "frontend/lsp/methods.h"
#include "ir/directive/directive_rows.h"

namespace piper::lsp {

namespace {

/// A blank asks only where something must follow it, other than a new name.
bool waits(const StatementAt& statement) {
  constexpr std::string_view kBefore[] = {
      "B",       "BI",     "BW",   "F",    "R",    "and", "as", "backward", "by",   "else",
      "if",      "in",     "into", "loss", "not",  "on",  "or", "order",    "over", "repeat",
      "require", "return", "then", "use",  "with", "=",   ":",  ",",        "->"};
  if (const directive::DirectiveRow* const row = directive::find_directive(statement.last()))
    return row->works() && row->subject != directive::Subject::named;
  return std::find(std::begin(kBefore), std::end(kBefore), statement.last()) != std::end(kBefore);
}

}  // namespace

json::Value completion(Request& request) {
  json::Array items;
  const std::uint32_t at = request.offset();
  if (request.module() == nullptr) return items;
  const StatementAt statement = statement_at(request, at);
  const json::Object* context = request.params().getObject("context");
  if (context != nullptr && context->getString("triggerCharacter").value_or("") == " " &&
      !waits(statement))
    return items;
  if (statement.nowhere) return items;
  for (Candidate& candidate : candidates(request, statement, at)) {
    json::Object item{
        {"label", text(candidate.label)},
        // where there is an edit, some clients compare with nothing else
        {"filterText", text(candidate.label)},
        {"kind", static_cast<int>(candidate.kind)},
        {"sortText", text(candidate.sort + candidate.label)},
        {"textEdit", json::Object{{"range", request.json(statement.typed)},
                                  {"newText", text(candidate.insert.empty() ? candidate.label
                                                                            : candidate.insert)}}}};
    if (!candidate.use.empty()) {
      const Edit edit = sema::use_line(*request.module(), candidate.use);
      item["additionalTextEdits"] = json::Array{
          json::Object{{"range", request.json(edit.range)}, {"newText", text(edit.text)}}};
    }
    if (!candidate.detail.empty()) item["detail"] = text(candidate.detail);
    if (!candidate.doc.empty()) item["documentation"] = markdown(candidate.doc);
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace piper::lsp
