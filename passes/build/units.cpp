#include "passes/build/units.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "llvm/ADT/SetVector.h"

namespace piper::passes {

namespace {

using directive::Directive;

/// The regions around an operation, outermost first.
std::vector<RegionId> path_to(const RegionTable& regions, RegionId region) {
  std::vector<RegionId> path;
  for (; region.valid(); region = regions.parent(region)) path.push_back(region);
  std::reverse(path.begin(), path.end());
  return path;
}

/// The number of outer regions common to all operations.
std::size_t common_depth(const tensor::Graph& model) {
  std::optional<std::vector<RegionId>> common;
  for (const tensor::Node& node : model.nodes()) {
    const std::vector<RegionId> path = path_to(model.regions, node.region);
    if (!common) common = path;
    common->resize(static_cast<std::size_t>(
        std::mismatch(common->begin(), common->end(), path.begin(), path.end()).first -
        common->begin()));
  }
  return common ? common->size() : 0;
}

/// The regions directly inside stages, or inside the model.
void add_inner(const tensor::Graph& model, const directive::Strategy& strategy,
               llvm::SetVector<Symbol>& units) {
  std::vector<Symbol> stages;
  for (const Directive& directive : strategy.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&directive))
      stages.push_back(partition->into.name);
  }
  const auto is_stage = [&](RegionId region) {
    return std::find(stages.begin(), stages.end(), model.regions.name(region)) != stages.end();
  };
  const std::size_t depth = stages.empty() ? common_depth(model) : 0;
  for (const tensor::Node& node : model.nodes()) {
    const std::vector<RegionId> path = path_to(model.regions, node.region);
    const auto inside = stages.empty() ? path.begin() + static_cast<std::ptrdiff_t>(depth)
                                       : std::find_if(path.rbegin(), path.rend(), is_stage).base();
    // Work outside all stages has no unit.
    if (inside != path.end() && (stages.empty() || inside != path.begin()))
      units.insert(model.regions.name(*inside));
  }
}

}  // namespace

std::vector<Symbol> units(const tensor::Graph& model, const directive::Strategy& strategy) {
  llvm::SetVector<Symbol> units;
  bool whole = false;
  for (const Directive& directive : strategy.directives) {
    const auto* replicate = std::get_if<directive::Replicate>(&directive);
    if (replicate == nullptr || replicate->zero < 2) continue;
    for (const directive::Selector& target : replicate->targets) {
      whole = whole || target.coordinates.empty();
      for (const directive::Coordinate& coordinate : target.coordinates)
        units.insert(coordinate.name);
    }
  }
  if (whole) add_inner(model, strategy, units);
  return {units.begin(), units.end()};
}

}  // namespace piper::passes
