#include "ir/dag/bucket_layout.h"

#include <algorithm>

#include "ir/alignment.h"

namespace piper::dag {

std::int64_t state_slots(const directive::Settings& settings, tensor::DType parameter) {
  return settings.optimizer ? settings.optimizer->slots() + (tensor::is_narrow(parameter) ? 1 : 0)
                            : 0;
}

BucketLayout bucket_layout(const Dag& dag, const Bucket& bucket) {
  BucketLayout layout;
  if (!bucket.params.empty())
    layout.parameters = dag.param_types[bucket.params.front().index()].dtype;
  layout.sums = tensor::wide(layout.parameters);
  // A boundary of the wider type too.
  const auto boundary =
      kAlignment / static_cast<std::int64_t>(tensor::dtype_bytes(layout.parameters));
  for (const tensor::ParamId param : bucket.params) {
    layout.offsets.push_back(layout.elements);
    layout.elements += round_up(dag.param_types[param.index()].elements(), boundary);
  }
  layout.parts = dag.extent(dag.sharded_over(bucket));
  layout.is_sharded = {!bucket.parameters.replicated(), !bucket.gradients.replicated(),
                       !bucket.state.replicated()};
  layout.elements = round_up(layout.elements, layout.parts * boundary);
  layout.slots = dag.frozen(bucket) ? 0 : state_slots(dag.settings, layout.parameters);
  return layout;
}

Sharding bucket_sharding(const Dag& dag, const Bucket& bucket) {
  return {full_interval(bucket_layout(dag, bucket).elements),
          axes_of(dag.context->layouts[dag.sharded_layout(bucket)], AxisLayout::flat_sharded(),
                  dag.mesh)};
}

std::vector<BucketLayout> bucket_layouts(const Dag& dag) {
  std::vector<BucketLayout> layouts;
  layouts.reserve(dag.buckets.size());
  for (const Bucket& bucket : dag.buckets) layouts.push_back(bucket_layout(dag, bucket));
  return layouts;
}

std::vector<std::int64_t> squared_elements(const Dag& dag, const Bucket& bucket) {
  if (bucket.sharded()) return {bucket_layout(dag, bucket).block()};
  std::vector<std::int64_t> elements;
  for (const tensor::ParamId param : bucket.params)
    elements.push_back(dag.param_types[param.index()].elements());
  return elements;
}

std::vector<SquaredPart> norm_order(const Dag& dag) {
  std::vector<SquaredPart> order;
  for (std::size_t b = 0; b < dag.trained_buckets(); ++b) {
    const std::vector<tensor::ParamId>& params = dag.buckets[b].params;
    const std::size_t parts = dag.buckets[b].sharded() ? 1 : params.size();
    for (std::uint32_t i = 0; i < parts; ++i) order.push_back({params[i], BucketId::at(b), i});
  }
  std::sort(order.begin(), order.end(),
            [](const SquaredPart& a, const SquaredPart& b) { return a.first < b.first; });
  return order;
}

std::vector<BucketPosition> bucket_positions(const Dag& dag) {
  std::vector<BucketPosition> places(dag.params.size());
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    const std::vector<tensor::ParamId>& params = dag.buckets[b].params;
    for (std::uint32_t i = 0; i < params.size(); ++i)
      places[params[i].index()] = {BucketId::at(b), i};
  }
  return places;
}

}  // namespace piper::dag
