#include "ir/dag/segment_text.h"

namespace piper::dag {

std::string region_text(const Dag& dag, const Chunk& chunk) {
  std::string text = dag.regions.print(chunk.region, dag.context->symbols);
  return dag.regions.has_inner(chunk.region) ? text + ".rest" : text;
}

SegmentTexts::SegmentTexts(const Dag& dag) : dag_(dag), has_segments_(dag.regions.size() + 1) {
  for (const Chunk& chunk : dag.chunks) {
    if (chunk.segment > 0)
      has_segments_[chunk.region.valid() ? chunk.region.index() : dag.regions.size()] = true;
  }
}

std::string SegmentTexts::of(ChunkId id) const {
  const Chunk& chunk = dag_.chunks[id.index()];
  if (!has_segments_[chunk.region.valid() ? chunk.region.index() : dag_.regions.size()])
    return region_text(dag_, chunk);
  return dag_.regions.print(chunk.region, dag_.context->symbols) + ".rest[" +
         std::to_string(chunk.segment) + "]";
}

}  // namespace piper::dag
