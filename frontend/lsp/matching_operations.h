#pragma once
// Operations that belong together: an `F a` and its `B a`, a send and its receive.

#include <vector>

#include "frontend/lsp/request.h"

namespace piper::lsp {

/// The operation at a place and those of its declaration that match it: the passes of the same
/// work; for a communication its other end.
std::vector<SourceRange> matching_operations(Request& request, std::uint32_t at);

}  // namespace piper::lsp
