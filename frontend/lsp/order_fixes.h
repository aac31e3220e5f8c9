#pragma once
// Fixes of orders: the proposal of a hint is written into the text, checked, and offered if the
// mistake is gone and no new one appeared.

#include "frontend/lsp/request.h"

namespace piper::lsp {

/// For an operation that waits for a later one, moves the later statement before it; for pending
/// weight gradients, adds the loop that runs them at the end. At most one.
std::optional<Fix> order_fix(Request& request, Code code, std::uint32_t at);

}  // namespace piper::lsp
