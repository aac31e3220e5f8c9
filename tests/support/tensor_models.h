#pragma once
// Small models built by hand: the forward graphs that tests of differentiation, text and bodies
// use.

#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "tests/support/evaluate.h"
#include "tests/support/random_cases.h"

namespace piper::test {

struct ModelSize {
  std::int64_t batch = 4, seq = 4, dim = 8, heads = 2, vocab = 11, layers = 1;
  tensor::DType dtype = tensor::DType::f64;
};

/// Token and position embeddings, pre-norm blocks with attention and gelu, tied head, cross
/// entropy. `%tokens`, `%targets`.
tensor::Graph gpt_model(Context& context, const ModelSize& size);
/// Three layers, a squared error per sample. `%x`, `%y`.
tensor::Graph mlp_model(Context& context, const ModelSize& size);
/// Two towers over shared weights, a per-sample margin loss and a second loss on one tower.
/// `%left`, `%right`.
tensor::Graph two_tower_model(Context& context, const ModelSize& size);

/// Random numbers for all inputs (class numbers below `vocab`; every sample different) and
/// parameters.
std::vector<Array> random_leaves(const tensor::Graph& graph, const ModelSize& size, Random& random);
/// The leaves in graph order: inputs, then parameters.
std::vector<tensor::ValueId> leaves(const tensor::Graph& graph);

}  // namespace piper::test
