#pragma once
// Parameters of a job by name, out of the memory of the ranks that have them.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executor/executor.h"

namespace piper::runtime {

/// Gives `bytes` bytes of local rank `rank` (its number among them) from `offset` of its arena on, of the one on the host where `on_host`; null where they cannot be read. Valid
/// until the next call.
using ReadArena = std::function<const unsigned char*(std::size_t rank, bool on_host, std::uint64_t offset, std::uint64_t bytes)>;

/// A tensor of a parameter from its counted home, put together from what its ranks have; nothing where no local rank has it.
std::optional<ParameterValues> collect_parameter(std::span<const PiperJobRank> ranks, std::string_view name, Part part, const ReadArena& read);
/// Names of all parameters with a counted home among the ranks, sorted.
std::vector<std::string> counted_parameters(std::span<const PiperJobRank> ranks);

}  // namespace piper::runtime
