#pragma once
// Block structure from indentation if braces are missing: blocks that are opened by a colon, and
// the block that lacks its `{` or `}`.
//
// If the braces of a declaration match, indentation is ignored.

#include <string_view>

#include "frontend/parse/raw_token.h"
#include "frontend/source/selected_reports.h"

namespace piper::parse {

/// `rank r in p:` and deeper lines: reported, and given braces.
void brace_colon_blocks(RawTokens& tokens, std::string_view text, FileId file,
                        SelectedReports& sink);

/// Closes the blocks of declarations that lack a `}` before the first line outside of them, opens
/// those that lack a `{` behind the line above them, and reports both.
void match_blocks_by_indentation(RawTokens& tokens, std::string_view text, FileId file,
                                 SelectedReports& sink);

}  // namespace piper::parse
