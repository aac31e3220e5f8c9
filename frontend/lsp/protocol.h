#pragma once
// Values of the protocol: positions, ranges, places, errors, texts.
//
//   to_json(files, range, ColumnUnit::utf16)  ->  {"start":{"line":0,"character":4},"end":..}
//   path_of("file:///tmp/a%20b.pipe")         ->  /tmp/a b.pipe

#include <optional>
#include <string>
#include <string_view>

#include "ir/location.h"
#include "llvm/Support/JSON.h"

namespace piper::lsp {

namespace json = llvm::json;

enum class ErrorCode : int {
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  server_not_initialized = -32002,
  request_failed = -32803,
  content_modified = -32801,
  request_cancelled = -32800,
};

/// Thrown by a request that has no answer: the client receives the error.
struct Refusal {
  ErrorCode code = ErrorCode::request_failed;
  std::string message;
};

/// Text may come from a file that is not UTF-8; JSON must be.
json::Value text(std::string_view bytes);
json::Object markdown(std::string_view bytes);

/// Converts a client's position, which counts lines and columns from 0; nothing if it is not a
/// position.
std::optional<LineColumn> position_of(const json::Value* value);
json::Object to_json(LineColumn position);
json::Object to_json(const SourceTable& files, SourceRange range, ColumnUnit unit);

/// The path of a `file:` URI; of another one (`untitled:Untitled-1`) a path that no file has.
std::string path_of(std::string_view uri);
std::string uri_of(std::string_view path);

}  // namespace piper::lsp
