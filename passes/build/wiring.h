#pragma once
// Wiring: the edges of compute nodes follow from their bodies. A port reads the port that carries
// the same value of the model in the same instance; a producer feeds all its readers directly.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/dag/dag.h"
#include "llvm/ADT/DenseMap.h"

namespace piper::passes {

/// The producers of the model's values, by chunk and pass. A backward value has a port in `B` and
/// one in `BI` or `BW`.
class Producers {
 public:
  struct Producer {
    dag::ChunkId chunk;
    std::array<std::optional<std::uint32_t>, kPasses> output;  // by pass
    std::optional<std::uint32_t> recomputed_forward;           // of the recomputed forward
  };
  explicit Producers(const dag::Dag& dag);
  /// Null for inputs of the model and parameters.
  const Producer* of(tensor::ValueId global_value) const;

 private:
  llvm::DenseMap<tensor::ValueId, std::uint32_t> position_;
  std::vector<Producer> producers_;
};

/// Removes every node except those that run bodies, with its edges. Inputs that it fed have no
/// source afterwards.
void remove_surroundings(dag::Dag& dag);

/// Removes every node except the compute nodes and connects all inputs of these anew. Inputs of the
/// model and parameters have no source yet.
void wire(dag::Dag& dag);

/// Removes the data and saved outputs that no body reads. Their values are still computed.
void remove_unread_outputs(dag::Dag& dag);
/// Removes the bodies that are not `used` and returns the new id of each. Updates chunks, not
/// nodes.
std::vector<dag::BodyId> keep_bodies(dag::Dag& dag, const std::vector<bool>& used);

}  // namespace piper::passes
