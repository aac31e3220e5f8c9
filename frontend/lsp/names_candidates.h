#pragma once
// Completion inside a `names` item: paths of parameters, dimensions, and the words of its lines.

#include <vector>

#include "frontend/lsp/candidates.h"

namespace piper::lsp {

std::vector<Candidate> names_candidates(Request& request, const StatementAt& statement);

}  // namespace piper::lsp
