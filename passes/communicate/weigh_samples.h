#pragma once
// Weighs the samples of a held-out program: each loss is summed over the samples with weight 1; the
// weights are a further input of the program.
//
//   %loss = sum(%elements) {dims: [batch, seq]}
//     becomes
//   %rows = sum(%elements) {dims: [seq]}; %weighed = select_ge(%weight, 0.5, %rows); %loss = sum(%weighed) {dims: [batch]}

#include "ir/dag/dag.h"

namespace piper::passes {

/// Before: a forward-only DAG whose edges are not wired yet. After: bodies that sum a loss have a
/// port for `sample.weight`. Does not change a program in which samples depend on each other,
/// because a padding sample would change the results of others.
void weigh_samples(dag::Dag& dag);

}  // namespace piper::passes
