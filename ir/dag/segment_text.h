#pragma once
// The name of a chunk's work in a program: a selector that matches this chunk and no other.
//
//   one chunk for a region                         `block[1]`, `model`
//   beside chunks of regions inside it             `block[1].rest`, `model.rest`
//   one of several segments                        `block[1].rest[0]`, `block[1].rest[1]`

#include <string>
#include <vector>

#include "ir/dag/dag.h"

namespace piper::dag {

/// All segments of the chunk's region: `model.rest`.
std::string region_text(const Dag& dag, const Chunk& chunk);
inline std::string region_text(const Dag& dag, ChunkId chunk) {
  return region_text(dag, dag.chunks[chunk.index()]);
}

/// Texts of chunks, `model.rest[1]`; the DAG's chunks must not change meanwhile.
class SegmentTexts {
 public:
  explicit SegmentTexts(const Dag& dag);
  std::string of(ChunkId chunk) const;

 private:
  const Dag& dag_;
  std::vector<bool> has_segments_;  // per region, the root last
};

}  // namespace piper::dag
