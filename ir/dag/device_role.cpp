#include "ir/dag/device_role.h"

#include "ir/mesh.h"

namespace piper::dag {

std::size_t role_of_device(std::size_t roles, CoordinatesOfRole at_of,
                           std::span<const std::uint32_t> coordinates) {
  std::size_t best = roles;
  std::size_t best_fixed = 0;
  for (std::size_t role = 0; role < roles; ++role) {
    bool matches = true;
    std::size_t fixed = 0;
    for (std::size_t axis = 0; axis < coordinates.size() && matches; ++axis) {
      const std::int32_t at = at_of(role)[axis];
      if (at == DeviceSet::kWhole) continue;
      matches = at == static_cast<std::int32_t>(coordinates[axis]);
      ++fixed;
    }
    if (!matches || (best != roles && fixed <= best_fixed)) continue;
    best = role;
    best_fixed = fixed;
  }
  return best;
}

}  // namespace piper::dag
