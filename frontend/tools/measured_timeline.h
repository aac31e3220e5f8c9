#pragma once
// The last step of a run as a timeline: the actions of the plan, at the times at which they ran.

#include <span>

#include "backend/device_program/job.h"
#include "passes/simulate/timeline.h"
#include "runtime/executor/executor.h"

namespace piper::tools {

/// `planned`: the timeline of the plan's actions, with the same operations and lanes. One rank per
/// device, replicas included. Times begin with the first action of all.
passes::Timeline measured_timeline(const passes::Timeline& planned, const dag::Dag& dag,
                                   const backend::ProgramSet& programs,
                                   std::span<const runtime::RecordedRank> recorded);

}  // namespace piper::tools
