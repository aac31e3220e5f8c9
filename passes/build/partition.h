#pragma once
// Partition: cuts the depth of a region into stages by giving its work one more coordinate.
//
// The units of `partition R into stage: n` are the regions directly inside R in program order, each
// with the loose operations before it; those after the last go with it. If there are fewer units
// than n, the costliest divisible one is replaced by its contents, down to single operations.
// Stages are n non-empty runs of consecutive units, so a stage is convex and feeds only later ones;
// `sizes` counts units. By default the largest cost is as small as possible, and among such cuts the
// costs are as even as possible: a stage that ends early has time for its messages. The cost of an
// operation is that of its forward and backward ops on a nominal device with 8 floating-point
// operations per byte moved, over the whole batch, so it depends on the model alone.
//
//   partition gpt into stage: 2        gpt[0].block[3].norm[1]  ->  gpt[0].stage[1].block[3].norm[1]
//
// If the model marks regions of that name inside R, these are the stages, and n must be their
// number.

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"

namespace piper::passes {

/// Applies all partitions of the strategy to a differentiated model, outer ones first. If the model
/// consists of one call, a partition of the model cuts that call. False after reporting the first
/// partition that does not fit.
bool partition(tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink);
/// The same for a model that is not differentiated yet, with the same cuts.
bool partition_forward(tensor::Graph& model, const directive::Strategy& strategy,
                       DiagnosticSink& sink);

/// Divides costs into n runs of consecutive ones with the smallest maximum; among these with the
/// smallest sum of squares, unless there are very many costs; among these with the earliest cuts.
/// Returns the starts of all runs except the first. Needs 1 <= n <= costs.size().
std::vector<std::size_t> balanced_cuts(std::span<const std::uint64_t> costs, std::size_t n);

}  // namespace piper::passes
