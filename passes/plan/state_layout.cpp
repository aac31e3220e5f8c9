#include "passes/plan/state_layout.h"

#include "passes/plan/memory_layout.h"

namespace piper::passes {

using namespace dag;

std::vector<BucketLayout> bucket_layouts(const Dag& dag) {
  std::vector<BucketLayout> layouts;
  layouts.reserve(dag.buckets.size());
  for (const Bucket& bucket : dag.buckets) {
    BucketLayout layout;
    for (const tensor::ParamId param : bucket.params) {
      layout.offsets.push_back(layout.bytes);
      layout.bytes += aligned(dag.param_types[param.index()].bytes());
    }
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

std::uint32_t optimizer_slots(const directive::Settings& settings) {
  if (!settings.optimizer) return 0;
  if (settings.optimizer->kind == directive::Optimizer::Kind::adamw) return 2;
  return settings.optimizer->momentum != 0 ? 1 : 0;
}

std::vector<ParamPlace> param_places(const Dag& dag) {
  std::vector<ParamPlace> places(dag.params.size());
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    const std::vector<tensor::ParamId>& params = dag.buckets[b].params;
    for (std::uint32_t i = 0; i < params.size(); ++i) places[params[i].index()] = {BucketId::at(b), i};
  }
  return places;
}

}  // namespace piper::passes
