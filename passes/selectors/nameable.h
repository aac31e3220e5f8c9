#pragma once
// What lines can name before work is split: the regions of a model, or of the chunks that a DAG is made of, and the samples of the batch.
//
//   model gpt with block 0..3, batch of 32   ->   regions `gpt`: {0}, `block`: {0, 1, 2, 3}; 32 samples

#include <string_view>
#include <vector>

#include "ir/dag/dag.h"
#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/build/sampling.h"

namespace piper::passes {

struct Nameable {
  struct Name {
    std::vector<bool> exists;  // by index
    LocId loc;                 // of work in such a region
  };
  const Context& context;
  const RegionTable& table;
  std::string_view model;  // its name; a DAG does not know it
  bool of_model;           // false: regions of which no chunk is made are not known
  Batch batch;
  llvm::DenseMap<Symbol, Name> regions;
  std::vector<RegionId> innermost;  // of all work, each once
  llvm::DenseMap<Symbol, Nameable::Name> without_loss;  // regions of operations that no loss needs; one may be in `regions`, too
  llvm::DenseMap<Symbol, Nameable::Name> integer_names;  // regions that give integers another name, which is no work; likewise

  /// Whether work in the region has a coordinate; all has `model`.
  bool has(RegionId region, const directive::Coordinate& coordinate) const;
};

/// Of operations that a loss needs. The model must outlive it.
Nameable nameable(const tensor::Graph& model, const directive::Settings& settings);
/// The DAG must outlive it.
Nameable nameable(const dag::Dag& dag);

}  // namespace piper::passes
