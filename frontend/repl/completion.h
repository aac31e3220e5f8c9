#pragma once
// Completions at the end of a line of a session.

#include <string_view>

#include "frontend/repl/line_editor.h"
#include "frontend/repl/session.h"

namespace piper::repl {

/// Commands after `:`, the words of a command after it, elsewhere names and words of the language.
Completion completion_of(Session& session, std::string_view text);

}  // namespace piper::repl
