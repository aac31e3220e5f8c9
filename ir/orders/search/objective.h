#pragma once
// The figure that a search makes small.

#include <cstdint>

namespace piper::orders {

/// The longest time of a rank from its first start to its last end, or the time until all ranks are
/// done.
enum class Objective : std::uint8_t { span, makespan };

}  // namespace piper::orders
