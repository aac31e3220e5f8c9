#include "frontend/lsp/methods.h"

#include "frontend/lsp/call_hierarchy.h"

namespace piper::lsp {

namespace {

constexpr Method kMethods[] = {
    {"callHierarchy/incomingCalls", incoming_calls},
    {"callHierarchy/outgoingCalls", outgoing_calls},
    {"textDocument/codeAction", code_action},
    {"textDocument/codeLens", code_lens},
    {"codeLens/resolve", code_lens_resolve, true, true},
    {"textDocument/completion", completion},
    {"textDocument/definition", definition},
    {"textDocument/documentHighlight", document_highlight},
    {"textDocument/documentSymbol", document_symbol},
    {"textDocument/foldingRange", folding_range},
    {"textDocument/formatting", formatting},
    {"textDocument/hover", hover},
    {"textDocument/inlayHint", inlay_hint},
    {"textDocument/prepareCallHierarchy", prepare_call_hierarchy},
    {"textDocument/prepareRename", prepare_rename},
    {"textDocument/references", references},
    {"textDocument/rename", rename},
    {"textDocument/selectionRange", selection_range},
    {"textDocument/semanticTokens/full", semantic_tokens},
    {"textDocument/signatureHelp", signature_help},
    {"workspace/executeCommand", execute_command, true, true},
    {"workspace/symbol", workspace_symbol, false},
};

json::Array names(std::span<const std::string_view> list) {
  json::Array array;
  for (const std::string_view name : list) array.push_back(text(name));
  return array;
}

std::string_view encoding_name(ColumnUnit unit) {
  return unit == ColumnUnit::utf16 ? "utf-16" : unit == ColumnUnit::byte ? "utf-8" : "utf-32";
}

}  // namespace

std::span<const Method> methods() { return kMethods; }

json::Object capabilities(ColumnUnit unit) {
  return json::Object{
      {"positionEncoding", text(encoding_name(unit))},
      {"textDocumentSync",
       json::Object{
           {"openClose", true}, {"change", 2}, {"save", json::Object{{"includeText", false}}}}},
      {"completionProvider",
       json::Object{{"triggerCharacters", json::Array{".", "[", "(", ",", ":", " "}}}},
      {"callHierarchyProvider", true},
      {"hoverProvider", true},
      {"signatureHelpProvider", json::Object{{"triggerCharacters", json::Array{"(", ","}},
                                             {"retriggerCharacters", json::Array{":"}}}},
      {"definitionProvider", true},
      {"referencesProvider", true},
      {"documentHighlightProvider", true},
      {"documentSymbolProvider", true},
      {"workspaceSymbolProvider", true},
      {"codeActionProvider", json::Object{{"codeActionKinds", json::Array{"quickfix"}}}},
      {"codeLensProvider", json::Object{{"resolveProvider", true}}},
      {"renameProvider", json::Object{{"prepareProvider", true}}},
      {"documentFormattingProvider", true},
      {"foldingRangeProvider", true},
      {"selectionRangeProvider", true},
      {"inlayHintProvider", true},
      {"semanticTokensProvider",
       json::Object{{"legend", json::Object{{"tokenTypes", names(semantic_token_types())},
                                            {"tokenModifiers", names(semantic_token_modifiers())}}},
                    {"full", true}}},
      {"executeCommandProvider", json::Object{{"commands", command_names()}}},
  };
}

}  // namespace piper::lsp
