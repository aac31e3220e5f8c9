#pragma once
// Place: a device set for every node.
//
// A rule without a pass, or with `F`, places the forward work of its selector, and the backward
// follows the forward of the same instance; rules with `B`, `BI` or `BW` place backward work
// separately. Among several rules the one in fewer calls of schedules applies, and within one
// schedule the one with more coordinates (a pass counts as one). Without any `place` all work is on
// the whole mesh. `surround` places loads with their readers, updates at the owners of their
// parameters.
//
//   place stage[0] on cluster[pp: 0]      F.stage0.mb3, B.stage0.mb3, load.tokens.mb3, update.stage0.0   on   cluster[pp: 0]

#include <array>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// By pass: the devices that the lines of a strategy give every chunk and instance, row-major;
/// invalid without a line.
using Places = std::array<std::vector<DeviceSetId>, kPasses>;
/// For passes before this one; reports nothing.
Places places_of(dag::Dag& dag, const directive::Strategy& strategy);

/// Takes a DAG from level split to level placed, only chunks, samples not yet sharded over devices.
/// False after reporting.
bool place(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
