#pragma once
// Fixes of orders: what a hint proposes is written into the text, checked, and offered where the mistake is gone and no other one came.

#include "frontend/lsp/request.h"

namespace piper::lsp {

/// Of an operation that waits for a later one, the later statement put before it; of weight gradients that are left, what runs them at the end. At most one.
std::optional<Fix> order_fix(Request& request, Code code, std::uint32_t at);

}  // namespace piper::lsp
