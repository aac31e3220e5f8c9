#pragma once
// Parameters of a job by name, read from the memory of the ranks that hold them.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executor/executor.h"

namespace piper::runtime {

/// Gives `bytes` bytes of local rank `rank` (its number among them) from `offset` of its arena, or
/// of its arena on the host if `on_host`; null if they cannot be read. Valid until the next call.
using ReadArena = std::function<const unsigned char*(std::size_t rank, bool on_host,
                                                     std::uint64_t offset, std::uint64_t bytes)>;

/// A tensor of a parameter from its counted owner, assembled from the shards of its ranks; empty if
/// no local rank has it.
std::optional<ParameterValues> collect_parameter(std::span<const PiperJobRank> ranks,
                                                 std::string_view name, ParamTensor part,
                                                 const ReadArena& read);
/// Names of all parameters with a counted owner among the ranks, sorted.
std::vector<std::string> counted_parameters(std::span<const PiperJobRank> ranks);

}  // namespace piper::runtime
