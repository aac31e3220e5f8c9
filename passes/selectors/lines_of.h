#pragma once
// The strategy lines to blame for nodes that are no work of the model: a `place` for data movement
// between devices, a `replicate` for collectives over replicas.

#include "ir/dag/dag.h"

namespace piper::passes {

/// The line that places work on exactly these devices; `otherwise` if there is none.
LocId place_line(const directive::Strategy& strategy, DeviceSetId devices, LocId otherwise);

/// The line that replicates over one of these axes: the one at `preferred` if it does, else the
/// first; `otherwise` if there is none.
LocId replicate_line(const dag::Dag& dag, const directive::Strategy& strategy, AxisMask axes,
                     LocId preferred, LocId otherwise);

}  // namespace piper::passes
