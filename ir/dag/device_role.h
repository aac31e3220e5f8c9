#pragma once
// The role that a device runs.
//
//   roles at cluster[pp: 0], cluster[pp: 0, dp: 3]; device pp 0, dp 3   ->   1

#include <cstddef>
#include <cstdint>
#include <span>

#include "llvm/ADT/STLFunctionalExtras.h"

namespace piper::dag {

/// The coordinates that fix a role, DeviceSet::kWhole for any.
using CoordinatesOfRole = llvm::function_ref<std::span<const std::int32_t>(std::size_t role)>;

/// Among `roles` roles the one that matches the coordinates of a device and has the most fixed ones;
/// `roles` if none matches.
std::size_t role_of_device(std::size_t roles, CoordinatesOfRole at_of,
                           std::span<const std::uint32_t> coordinates);

}  // namespace piper::dag
