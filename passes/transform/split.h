#pragma once
// Split: a node per chunk, pass and instance. Dimensions are in written order: `copy: 2, mb: 4`
// gives copy 0 the first half of the batch and divides each half into four; instance (c, i) gets
// the (4c + i)-th part of the samples.
//
// The backward of an instance is one node `B`, or `BI` and `BW` if an order names one of these for
// it. An operation that names work of several ranks counts for the work that `place` lines put on
// its rank.
//
//   split batch into mb: 2       F.stage0  B.stage0   ->   F.stage0.mb0  B.stage0.mb0  F.stage0.mb1  BI.stage0.mb1  BW.stage0.mb1

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// Takes a DAG from level built to level split, only chunks (`surround`); without a `split`
/// directive there is one instance. False after reporting.
bool split(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
