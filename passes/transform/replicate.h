#pragma once
// Replicate: what each device holds of the values of its work, and the extents that follow.
//
// Layouts were derived with the bodies. Each device set has whole axes; on a whole axis that `replicate` names for the region the devices hold different samples, on
// another they repeat the work and the layout goes, with a warning where nothing in the program uses the axis. An inner region overrides an outer one axis by axis.
// The replicas of a node cut its block of samples into contiguous parts, in order of coordinates.
//
//   replicate model over dp     F.stage0.mb3 on cluster[pp: 0], %x: f32[batch: 4*]<dp: batch>   ->   %x: f32[batch: 2*]<dp: batch>: each of its devices runs half of mb3

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// Reaches level placed: layouts on the axes that devices have, local extents, homes and buckets of parameters. False after reporting.
bool replicate(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
