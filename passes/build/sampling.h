#pragma once
// Checks whether a body may run on part of the batch, and divides its extents.

#include <cstdint>
#include <string_view>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// The samples of one step, and the dimension that counts them; 1 if the model has no inputs.
struct Batch {
  Symbol name;
  std::int64_t samples = 1;
  LocId loc;  // its location in the program
};
Batch batch_of(const dag::Dag& dag);
/// The same for a model without a DAG.
Batch batch_of(const tensor::Graph& model, const directive::Settings& settings);

/// Divides the sampled extents of a body, each of which is the batch. The batch must be divisible.
void divide_samples(dag::Body& body, std::int64_t divide);

/// Reports the operations of a chunk's forward body in which samples depend on each other: its work
/// cannot be divided. `how` names the division (`split into microbatches`), `loc` its location.
/// Sums of losses are the one legal sum over samples.
bool samples_are_independent(const dag::Dag& dag, const dag::Chunk& chunk, std::string_view how,
                             LocId loc, DiagnosticSink& sink);

/// Reports a batch that does not divide into `parts` equal ones, or that has fewer samples; `how`
/// spells the number out (`` `mb: 4` x `dp: 2` ``).
bool batch_divides(const Batch& batch, std::int64_t parts, std::string_view how, LocId loc,
                   DiagnosticSink& sink);

}  // namespace piper::passes
