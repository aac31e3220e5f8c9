#pragma once
// The requests about files that the server answers: one table, one function each. Requests of the
// protocol itself are in server.cpp.

#include <span>
#include <string_view>

#include "frontend/lsp/request.h"

namespace piper::lsp {

struct Method {
  std::string_view name;
  json::Value (*answer)(Request& request);
  bool of_file = true;  // `params.textDocument` or an item says which one
  bool plans = false;   // it needs a plan, which may take long: the thread that checks answers it
};

std::span<const Method> methods();

/// The capabilities in the answer of `initialize`.
json::Object capabilities(ColumnUnit unit);

// completion.cpp
json::Value completion(Request& request);
// definition.cpp
json::Value definition(Request& request);
json::Value references(Request& request);
json::Value document_highlight(Request& request);
// fixes.cpp
json::Value code_action(Request& request);
// folding.cpp
json::Value folding_range(Request& request);
json::Value selection_range(Request& request);
// formatting.cpp
json::Value formatting(Request& request);
// hover.cpp
json::Value hover(Request& request);
// inlay_hints.cpp
json::Value inlay_hint(Request& request);
// lenses.cpp
json::Value code_lens(Request& request);
json::Value code_lens_resolve(Request& request);
// commands.cpp
json::Value execute_command(Request& request);
json::Array command_names();
inline constexpr std::string_view kTrainCommand = "piper.train";
/// The reading thread runs this command, because it never waits.
inline constexpr std::string_view kStopCommand = "piper.stop";
// outline.cpp
json::Value document_symbol(Request& request);
json::Value workspace_symbol(Request& request);
// rename.cpp
json::Value prepare_rename(Request& request);
json::Value rename(Request& request);
// semantic_tokens.cpp
json::Value semantic_tokens(Request& request);
std::span<const std::string_view> semantic_token_types();
std::span<const std::string_view> semantic_token_modifiers();
// signature_help.cpp
json::Value signature_help(Request& request);

}  // namespace piper::lsp
