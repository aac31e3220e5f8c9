#pragma once
// Tables of a terminal: columns as wide as their contents, two blanks between them.

#include <string>
#include <vector>

namespace piper::pictures {

/// The first row is the heading. Columns of `left` begin where the heading does, the others, and
/// those beyond `left`, end there.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       const std::vector<bool>& left);

}  // namespace piper::pictures
