#pragma once
// Partition: cuts the depth of a region into stages by giving its work one more coordinate.
//
// The units of `partition R into stage: n` are the regions directly inside R in program order, each with the loose operations before it;
// those after the last go with it. With fewer units than n the costliest one that has an inside gives way to it, down to single
// operations. Stages are n non-empty runs of consecutive units, so a stage is convex and feeds only later ones; `sizes` counts units, the
// default minimises the largest cost (ties: earlier cuts). The cost of an operation is that of its forward and backward ops on a nominal
// device that does 8 floating-point operations in the time that it moves a byte, over the whole batch: it depends on the model alone.
//
//   partition gpt into stage: 2        gpt[0].block[3].norm[1]  ->  gpt[0].stage[1].block[3].norm[1]
//
// Where the model marks regions of that name inside R these are taken, and n must be their number.

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// Applies all partitions of the strategy to a differentiated model, outer ones first. A partition of the whole model cuts inside the call that the
/// model consists of. False after reporting the first that does not fit the model.
bool partition(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink);
/// The same of a model that is not differentiated yet: it is cut as it would be then.
bool partition_forward(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink);

/// The first of n runs of consecutive costs starts at 0; gives where the others start, so that the largest run is least and cuts are as early as possible.
/// Needs 1 <= n <= costs.size().
std::vector<std::size_t> balanced_cuts(std::span<const std::uint64_t> costs, std::size_t n);

}  // namespace piper::passes
