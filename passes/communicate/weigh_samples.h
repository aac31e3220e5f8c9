#pragma once
// Weighs the samples of a held-out program: each loss is summed over the samples whose weight, a further input of the program, is 1.
//
//   %loss = sum(%elements) {dims: [batch, seq]}
//     becomes
//   %rows = sum(%elements) {dims: [seq]}; %weighed = select_ge(%weight, 0.5, %rows); %loss = sum(%weighed) {dims: [batch]}

#include "ir/dag/dag.h"

namespace piper::passes {

/// Before: a forward-only DAG whose edges are not wired yet. After: bodies that sum a loss have a port for `sample.weight`. Leaves a program alone in which samples depend on each other: one that does
/// not count would change what others give.
void weigh_samples(dag::Dag& dag);

}  // namespace piper::passes
