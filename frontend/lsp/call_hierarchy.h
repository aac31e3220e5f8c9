#pragma once
// Which schedules, models, functions and trains call which.

#include "frontend/lsp/request.h"

namespace piper::lsp {

json::Value prepare_call_hierarchy(Request& request);
json::Value incoming_calls(Request& request);
json::Value outgoing_calls(Request& request);

}  // namespace piper::lsp
