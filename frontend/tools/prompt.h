#pragma once
// The prompt of `piper sample` as tokens: a text, the contents of a file, or numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/tools/session.h"
#include "ir/dag/token_program.h"

namespace piper::tools {

/// `1,2,3`; nothing if the text is no such list.
std::optional<std::vector<std::int64_t>> parse_ids(std::string_view text);

/// The tokens of --prompt, --prompt-file or --prompt-ids. `bytes`: the tokens of the model are the
/// bytes of texts. Nothing, and a diagnostic, if there are none, if they are more than the model has
/// positions, or if the model cannot read one of them.
std::optional<std::vector<std::int64_t>> read_prompt(Session& session,
                                                     const dag::TokenProgram& program, bool bytes);

}  // namespace piper::tools
