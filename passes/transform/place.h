#pragma once
// Place: a device set for every node.
//
// A rule without a pass, or with `F`, places the forward work of the instances that its selector means, and the backward follows the forward of
// the same instance; rules that name `B`, `BI` or `BW` place backward work on its own. Of several rules that in fewer calls of schedules holds, and of one
// schedule's that with more coordinates (a pass counts as one). Without any `place` everything is on the whole mesh. `surround` places loads with their readers,
// updates at the homes of their parameters.
//
//   place stage[0] on cluster[pp: 0]      F.stage0.mb3, B.stage0.mb3, load.tokens.mb3, update.stage0.0   on   cluster[pp: 0]

#include <array>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// By pass: where the lines of a strategy put it of every chunk and instance, row-major; invalid where no line says it.
using Places = std::array<std::vector<DeviceSetId>, kPasses>;
/// For passes before this one; reports nothing.
Places places_of(dag::Dag& dag, const directive::Strategy& strategy);

/// Takes a DAG from level split to level placed, chunks alone, samples not yet divided over devices. False after reporting.
bool place(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
