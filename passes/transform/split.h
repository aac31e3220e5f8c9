#pragma once
// Split: a node per chunk, pass and instance. Dimensions stand in written order: `copy: 2, mb: 4` gives copy 0 the first half of the batch
// and cuts each half into four; instance (c, i) gets the (4c + i)-th block of samples.
//
// The backward of an instance is one node `B`, or `BI` and `BW` where an order names one of these for it: the tree of the order decides, and
// where an operation names work of several ranks, what `place` lines put on the rank that it stands in.
//
//   split batch into mb: 2       F.stage0  B.stage0   ->   F.stage0.mb0  B.stage0.mb0  F.stage0.mb1  BI.stage0.mb1  BW.stage0.mb1

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// Takes a DAG from level built to level split, chunks alone (`surround`); without a `split` directive there is one instance. False after reporting.
bool split(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
