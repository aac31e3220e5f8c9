#pragma once
// How a program names what a chunk runs: words that a selector means it by, and nothing else that other chunks run.
//
//   one chunk for a region                         `block[1]`, `model`
//   beside chunks of regions inside it             `block[1].rest`, `model.rest`
//   one of several pieces                          `block[1].rest[0]`, `block[1].rest[1]`

#include <string>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::dag {

/// All pieces of the chunk's region: `model.rest`.
std::string region_text(const Dag& dag, const Chunk& chunk);
inline std::string region_text(const Dag& dag, ChunkId chunk) { return region_text(dag, dag.chunks[chunk.index()]); }

/// Texts of chunks, `model.rest[1]`; the DAG's chunks stay while this lives.
class PieceTexts {
 public:
  explicit PieceTexts(const Dag& dag);
  std::string of(ChunkId chunk) const;

 private:
  const Dag& dag_;
  std::vector<bool> has_pieces_;  // per region, the root last
};

}  // namespace piper::dag
