#pragma once
// Build: from the differentiated, partitioned model to a training DAG at level built.
//
// Chunks are the segments of `segments.h` at the regions that some directive names (stages of a
// partition count as named). Each has a body for `F` and one for `B`; if an order names `BI` or
// `BW`, also one for each of these; if a `recompute` line names it, one for `R` and a recomputed forward. The
// bodies have the extents of the whole batch. Buckets are made; `surround` adds one Load per input,
// one Update per bucket and one Report per loss.
//
//   model gpt with stage[0], stage[1]   ->   F.stage0  F.stage1  B.stage0  B.stage1  load.tokens  update.stage0.0  report.gpt.loss.0 ...

#include <optional>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// Every name in selectors is one of the model or of a split.
dag::Dag build(const tensor::Graph& model, const directive::Strategy& strategy);

}  // namespace piper::passes
