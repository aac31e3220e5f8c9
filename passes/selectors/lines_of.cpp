#include "passes/selectors/lines_of.h"

#include <algorithm>
#include <variant>

namespace piper::passes {

LocId place_line(const directive::Strategy& strategy, DeviceSetId devices, LocId otherwise) {
  for (const directive::Directive& directive : strategy.directives) {
    const auto* place = std::get_if<directive::Place>(&directive);
    if (place != nullptr && place->devices == devices) return place->loc;
  }
  return otherwise;
}

LocId replicate_line(const dag::Dag& dag, const directive::Strategy& strategy, AxisMask axes,
                     LocId preferred, LocId otherwise) {
  LocId first;
  for (const directive::Directive& directive : strategy.directives) {
    const auto* replicate = std::get_if<directive::Replicate>(&directive);
    const auto joins = [&](Symbol axis) { return (axes >> dag.mesh.find(axis) & 1) != 0; };
    if (replicate == nullptr || !std::any_of(replicate->axes.begin(), replicate->axes.end(), joins))
      continue;
    if (replicate->loc == preferred) return preferred;
    if (!first.valid()) first = replicate->loc;
  }
  return first.valid() ? first : otherwise;
}

}  // namespace piper::passes
