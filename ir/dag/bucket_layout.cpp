#include "ir/dag/bucket_layout.h"

#include <algorithm>

#include "ir/alignment.h"

namespace piper::dag {

std::int64_t state_slots(const directive::Settings& settings, tensor::DType parameter) {
  if (!settings.optimizer) return 0;
  return settings.optimizer->slots() + (settings.ema ? 1 : 0) +
         (tensor::is_narrow(parameter) ? 1 : 0);
}

std::uint32_t average_slot(const directive::Settings& settings) {
  return settings.optimizer && settings.ema ? settings.optimizer->slots() + 1 : 0;
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

Tuning tuning_of(const Dag& dag) {
  Tuning tuning;
  for (const tensor::Param& param : dag.params) {
    tuning.rates |= !param.frozen && param.rate != 1;
    tuning.decays |= !param.frozen && param.decay != 1;
  }
  tuning.decays &= dag.settings.optimizer && dag.settings.optimizer->weight_decay != 0;
  return tuning;
}

namespace {

/// Pieces end where either factor changes, so that a loop over pieces serves both.
tensor::Pieces factors(const Dag& dag, const Bucket& bucket, double tensor::Param::* factor) {
  const BucketLayout layout = bucket_layout(dag, bucket);
  tensor::Pieces pieces;
  const tensor::Param* before = nullptr;
  for (std::size_t i = 0; i < bucket.params.size(); ++i) {
    const tensor::Param& param = dag.params[bucket.params[i].index()];
    const std::int64_t end = i + 1 < bucket.params.size() ? layout.offsets[i + 1] : layout.elements;
    if (before != nullptr && before->rate == param.rate && before->decay == param.decay) {
      pieces.ends.back() = end;
    } else {
      pieces.ends.push_back(end);
      pieces.numbers.push_back(param.*factor);
    }
    before = &param;
  }
  const bool uniform = std::all_of(pieces.numbers.begin(), pieces.numbers.end(),
                                   [&](double number) { return number == pieces.numbers[0]; });
  return uniform ? tensor::Pieces{{layout.elements}, {pieces.numbers[0]}} : pieces;
}

}  // namespace

tensor::Pieces rate_factors(const Dag& dag, const Bucket& bucket) {
  return factors(dag, bucket, &tensor::Param::rate);
}
tensor::Pieces decay_factors(const Dag& dag, const Bucket& bucket) {
  return factors(dag, bucket, &tensor::Param::decay);
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
