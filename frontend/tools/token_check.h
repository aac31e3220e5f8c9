#pragma once
// The check of `tokens(...)` before a train is compiled.

#include <cstdint>
#include <optional>

#include "frontend/tools/session.h"
#include "runtime/failure.h"

namespace piper::tools {

/// Opens the files of `tokens(...)`, which the session keeps, and looks through their beginning:
/// warns of an id that the model has no row or class for, because a run stops at the first window
/// that holds one. Returns the number of windows side by side, or nothing with the reason in
/// `failure`.
std::optional<std::uint64_t> open_tokens(Session& session, const tensor::Graph& model,
                                         const directive::Data& data, runtime::Failure& failure);

}  // namespace piper::tools
