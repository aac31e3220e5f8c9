#pragma once
// Replicate: layouts on the axes that devices have.
//
// Layouts were derived with the bodies. Each device set has whole axes; on a whole axis that
// `replicate` names for the region, the devices have different samples. On another whole axis they
// repeat the work and the layout loses the axis, with a warning if the program does not use it. An
// inner region overrides an outer one axis by axis. The replicas of a node shard its samples
// contiguously, in order of coordinates.
//
//   replicate model over dp     F.stage0.mb3 on cluster[pp: 0, dp: 1], %x: f32[batch: 4*]<dp: batch>   ->   %x: f32[batch: 4*]
//                               F.stage0.mb3 on cluster[pp: 0]: the layout stays, and each of its devices runs half of mb3

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// Reaches level placed: layouts on the axes that devices have, owners and buckets of parameters.
/// False after reporting.
bool replicate(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
