#pragma once
// Idle devices: the devices of the mesh on which no chunk runs.
//
//   mesh line(pp: 8), two stages on pp[0] and pp[1]   ->   devices 2 to 7, `pp[2..8]`

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::passes {

/// Their numbers in the mesh, ascending. `dag` is placed.
std::vector<std::uint64_t> idle_devices(const dag::Dag& dag);

/// `pp[2..8]` if they are all devices of some coordinates of one axis; else the first of them by
/// all coordinates.
std::string idle_devices_text(const dag::Dag& dag, const std::vector<std::uint64_t>& idle);

}  // namespace piper::passes
