#include "frontend/lsp/call_hierarchy.h"

#include <map>

#include "frontend/lsp/names.h"
#include "frontend/lsp/outline.h"

namespace piper::lsp {

namespace {

bool calls_or_is_called(service::SymbolKind kind) {
  return kind != service::SymbolKind::param && kind != service::SymbolKind::mesh &&
         kind != service::SymbolKind::machine && kind != service::SymbolKind::names;
}

std::optional<json::Object> item_of(Request& request, const SourceTable& files,
                                    const service::Symbol& symbol) {
  const auto place = request.location(files, symbol.range);
  if (!place) return std::nullopt;
  return json::Object{{"name", text(symbol.name)},
                      {"kind", symbol_number(symbol.kind)},
                      {"detail", text(service::symbol_kind_name(symbol.kind))},
                      {"uri", *place->get("uri")},
                      {"range", *place->get("range")},
                      {"selectionRange", to_json(files, symbol.selection_range, request.unit())}};
}

/// The declaration of that name, in whichever file.
std::optional<service::Symbol> declared_at(Request& request, SourceRange name) {
  const sema::Program* program = request.program();
  if (program == nullptr) return std::nullopt;
  for (const auto& module : program->modules) {
    if (module->syntax.file != name.file) continue;
    for (service::Symbol& symbol : service::symbols_of(module->syntax)) {
      if (symbol.selection_range == name && calls_or_is_called(symbol.kind))
        return std::move(symbol);
    }
  }
  return std::nullopt;
}

/// The name of `params.item`; the request's document is its file.
std::optional<Name> name_of_item(Request& request) {
  const json::Object* item = request.params().getObject("item");
  const json::Object* range = item != nullptr ? item->getObject("selectionRange") : nullptr;
  if (range == nullptr)
    throw Refusal{ErrorCode::invalid_params,
                  "`item` is no item: it has `uri` and `selectionRange`"};
  return name_at(request, request.offset(range->get("start")));
}

struct Calls {
  json::Object item;
  json::Array ranges;
};

json::Array listed(std::vector<Calls> calls, llvm::StringRef role) {
  json::Array list;
  for (Calls& each : calls)
    list.push_back(
        json::Object{{role, std::move(each.item)}, {"fromRanges", std::move(each.ranges)}});
  return list;
}

}  // namespace

json::Value prepare_call_hierarchy(Request& request) {
  const std::optional<Name> name = name_at(request, request.offset());
  const std::optional<service::Symbol> symbol =
      name ? declared_at(request, name->declaration) : std::nullopt;
  auto item = symbol ? item_of(request, request.files(), *symbol) : std::nullopt;
  if (!item) return nullptr;
  return json::Array{std::move(*item)};
}

json::Value incoming_calls(Request& request) {
  const std::optional<Name> name = name_of_item(request);
  if (!name) return json::Array();
  std::vector<Calls> calls;
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> known;  // by file and place
  for (const Occurrence& each : occurrences(request, *name)) {
    const auto symbols = each.document->symbols(&request.cancellation());
    if (symbols.status == service::Status::cancelled) throw Cancelled();
    if (each.is_declaration || symbols.value == nullptr) continue;
    for (const service::Symbol& symbol : *symbols.value) {
      if (each.range.begin < symbol.range.begin || each.range.end > symbol.range.end ||
          !calls_or_is_called(symbol.kind))
        continue;
      const auto [at, added] =
          known.emplace(std::pair(each.document->path(), symbol.range.begin), calls.size());
      if (added) {
        auto item = item_of(request, each.document->files(), symbol);
        if (!item) {
          known.erase(at);
          continue;
        }
        calls.push_back({std::move(*item), {}});
      }
      calls[at->second].ranges.push_back(
          to_json(each.document->files(), each.range, request.unit()));
    }
  }
  return listed(std::move(calls), "from");
}

json::Value outgoing_calls(Request& request) {
  const std::optional<Name> name = name_of_item(request);
  const std::optional<service::Symbol> caller =
      name ? declared_at(request, name->declaration) : std::nullopt;
  if (!caller || caller->range.file != request.file()) return json::Array();
  std::vector<Calls> calls;
  std::map<SourceRange, std::size_t> known;  // by declaration
  for (const service::Use& use : request.uses()) {
    if (use.range.begin < caller->range.begin || use.range.end > caller->range.end) continue;
    const auto [at, added] = known.emplace(use.declaration, calls.size());
    if (added) {
      const std::optional<service::Symbol> callee = declared_at(request, use.declaration);
      auto item = callee ? item_of(request, request.files(), *callee) : std::nullopt;
      if (!item) {
        known.erase(at);
        continue;
      }
      calls.push_back({std::move(*item), {}});
    }
    calls[at->second].ranges.push_back(request.json(use.range));
  }
  return listed(std::move(calls), "to");
}

}  // namespace piper::lsp
