#pragma once
// The lines of a strategy that a node comes from though it is no work of the model: what moves values between devices is there because of a `place`, what joins replicas because of a `replicate`.

#include "ir/dag/dag.h"

namespace piper::passes {

/// The line that places something on exactly these devices; `otherwise` where no line does.
LocId place_line(const directive::Strategy& strategy, DeviceSetId devices, LocId otherwise);

/// The line that replicates over one of these axes: the one at `preferred` if it does, else the first. `otherwise` where no line does.
LocId replicate_line(const dag::Dag& dag, const directive::Strategy& strategy, AxisMask axes, LocId preferred, LocId otherwise);

}  // namespace piper::passes
