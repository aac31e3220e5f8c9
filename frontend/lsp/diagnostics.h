#pragma once
// Diagnostics in the client's terms.

#include <map>
#include <string>

#include "frontend/lsp/project.h"
#include "frontend/lsp/protocol.h"

namespace piper::lsp {

/// By URI. A diagnostic carries the edits of its fixes as `data`, with the version of the text that
/// they are for. Diagnostics without a file, or at a place that no editor shows, are put at the
/// beginning of `origin`.
std::map<std::string, json::Array> to_json(const std::vector<Diagnostic>& diagnostics,
                                           const Project& project, const SourceTable& files,
                                           const OpenFile& origin, ColumnUnit unit);

/// The edit of a fix in the form of the protocol; nothing if its file cannot be edited.
std::optional<json::Object> workspace_edit(const Fix& fix, const Project& project,
                                           const SourceTable& files, ColumnUnit unit);

}  // namespace piper::lsp
