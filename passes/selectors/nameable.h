#pragma once
// Names that lines may use before work is split: the regions of a model, or of the chunks of a DAG,
// and the samples of the batch.
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
  std::string_view model;  // its name; unknown for a DAG
  bool of_model;           // false: regions without a chunk are unknown
  Batch batch;
  llvm::DenseMap<Symbol, Name> regions;
  std::vector<RegionId> innermost;  // the distinct paths of all work
  // Regions of operations that no loss needs; one may be in `regions`, too.
  llvm::DenseMap<Symbol, Nameable::Name> without_loss;
  // Regions that only rename integers, which is no work; likewise.
  llvm::DenseMap<Symbol, Nameable::Name> integer_names;

  /// Whether work in the region has a coordinate; all work has `model`.
  bool has(RegionId region, const directive::Coordinate& coordinate) const;
};

/// The regions of operations that a loss needs. The model must outlive it.
Nameable nameable(const tensor::Graph& model, const directive::Settings& settings);
/// The DAG must outlive it.
Nameable nameable(const dag::Dag& dag);

}  // namespace piper::passes
