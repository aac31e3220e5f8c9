#include "frontend/lower/model/chain_model.h"

#include <algorithm>
#include <numeric>

namespace piper::lower {

void build_chain_model(tensor::Graph& model, directive::Strategy& strategy) {
  Context& context = model.context();
  std::uint64_t links = 1;
  std::int64_t batch = 1;
  bool runs_again = false, is_split = false;
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&directive)) {
      if (!partition->region.coordinates.empty()) continue;
      const std::uint64_t units =
          std::accumulate(partition->sizes.begin(), partition->sizes.end(), std::uint64_t{0});
      links = std::max({links, std::uint64_t{partition->into.extent}, units});
    } else if (const auto* split = std::get_if<directive::Split>(&directive)) {
      for (const directive::NamedExtent& part : split->into) batch *= is_split ? 1 : part.extent;
      is_split = true;
    } else if (const auto* replicate = std::get_if<directive::Replicate>(&directive)) {
      for (const Symbol axis : replicate->axes)
        batch *= strategy.mesh.axes[strategy.mesh.find(axis)].size;
    } else if (const auto* offload = std::get_if<directive::Offload>(&directive)) {
      if (offload->what == directive::Offload::What::optimizer)
        strategy.settings.optimizer.emplace().kind = directive::Optimizer::Kind::adamw;
    }
    runs_again = runs_again || std::holds_alternative<directive::Recompute>(directive);
  }
  model.name = "chain";
  const LocId loc = strategy.settings.loc;
  const Symbol batch_dim = context.symbol("batch"), width = context.symbol("width");
  const tensor::Type sample{tensor::DType::f32, {{batch_dim, batch, true}, {width, 1, false}}};
  const tensor::Type weight{tensor::DType::f32, {{width, 1, false}}};
  const Symbol x_name = context.symbol("x");
  tensor::ValueId x = model.add_leaf(sample, x_name);
  model.inputs.push_back({x_name, x, loc});
  RegionId region;
  for (std::uint32_t i = 0; i < links; ++i) {
    region = model.regions.child({}, context.symbol("link"), i);
    const Symbol name = context.symbol("link." + std::to_string(i) + ".w");
    const tensor::ValueId w = model.add_leaf(weight, name);
    model.params.push_back({name, w, {tensor::Init::Kind::ones, 1}, loc});
    const tensor::ValueId operands[] = {x, w};
    x = model.result(model.node(model.add(tensor::Op::mul, operands, {}, Pass::F, region, loc)));
    if (runs_again)
      x = model.result(
          model.node(model.add(tensor::Op::gelu, std::span(&x, 1), {}, Pass::F, region, loc)));
  }
  tensor::Attrs all;
  all.dims = {batch_dim, width};
  const tensor::ValueId sum = model.result(
      model.node(model.add(tensor::Op::sum, std::span(&x, 1), all, Pass::F, region, loc)));
  model.losses.push_back({context.symbol("chain.loss.0"), x, sum, batch, loc});
}

}  // namespace piper::lower
