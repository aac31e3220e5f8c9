// The declaration and the uses of a name.

#include "frontend/lsp/matching_operations.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/names.h"

namespace piper::lsp {

namespace {

json::Value place_of(Request& request, SourceRange range) {
  std::optional<json::Object> place = request.location(request.files(), range);
  return place ? json::Value(std::move(*place)) : json::Value(nullptr);
}

}  // namespace

json::Value definition(Request& request) {
  const std::uint32_t at = request.offset();
  const ast::Module* module = request.module();
  if (module == nullptr) return nullptr;
  // The path of a `use` opens the file.
  for (const ast::Item* item : module->items) {
    const auto* use = llvm::dyn_cast<ast::UseItem>(item);
    if (use == nullptr || !touches(use->range, at)) continue;
    const std::optional<FileId> file = used_file(request, *use);
    if (!file) return nullptr;
    return place_of(request, {*file, 0, 0});
  }
  const std::optional<Name> name = name_at(request, at);
  if (!name) return nullptr;
  return place_of(request, name->declaration);
}

json::Value references(Request& request) {
  json::Array places;
  const std::optional<Name> name = name_at(request, request.offset());
  if (!name) return places;
  const json::Object* context = request.params().getObject("context");
  const bool with_declaration =
      context != nullptr && context->getBoolean("includeDeclaration").value_or(false);
  for (const Occurrence& each : occurrences(request, *name)) {
    if (each.is_declaration && !with_declaration) continue;
    if (auto place = request.location(each.document->files(), each.range))
      places.push_back(std::move(*place));
  }
  return places;
}

json::Value document_highlight(Request& request) {
  json::Array places;
  const std::uint32_t at = request.offset();
  const auto add = [&](SourceRange range, bool written) {
    places.push_back(json::Object{{"range", request.json(range)}, {"kind", written ? 3 : 2}});
  };
  if (const std::optional<Name> name = name_at(request, at)) {
    if (name->declaration.file == request.file()) add(name->declaration, true);
    for (const service::Use& use : request.uses()) {
      if (use.declaration == name->declaration && use.range != name->declaration)
        add(use.range, false);
    }
    return places;
  }
  for (const SourceRange range : matching_operations(request, at)) add(range, false);
  return places;
}

}  // namespace piper::lsp
