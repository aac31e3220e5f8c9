#include "passes/check_selectors.h"

#include <algorithm>
#include <variant>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/select.h"

namespace piper::passes {

bool report_selectors(const tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink, std::span<const Symbol> missing) {
  const Context& context = model.context();
  llvm::DenseMap<Symbol, std::vector<bool>> indices;  // per name: which exist; none for a part of a partition that failed
  llvm::DenseSet<Symbol> ambiguous;                   // dimensions whose extents differ between splits
  llvm::DenseSet<RegionId> seen;
  for (const tensor::Node& node : model.nodes()) {
    for (RegionId r = node.region; r.valid() && seen.insert(r).second; r = model.regions.parent(r)) {
      std::vector<bool>& exist = indices[model.regions.name(r)];
      const std::uint32_t index = model.regions.index(r);
      if (exist.size() <= index) exist.resize(index + 1);
      exist[index] = true;
    }
  }
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&directive)) indices.try_emplace(partition->into.name);
    const auto* split = std::get_if<directive::Split>(&directive);
    if (split == nullptr) continue;
    for (const directive::NamedExtent& dim : split->into) {
      const auto [known, fresh] = indices.try_emplace(dim.name);
      if (!fresh && known->second.size() != dim.extent) ambiguous.insert(dim.name);
      known->second.assign(dim.extent, true);
    }
  }
  for (const Symbol name : missing) indices[name].clear();
  std::vector<std::string_view> names;
  for (const auto& [name, exist] : indices) names.push_back(context.text(name));
  std::sort(names.begin(), names.end());

  constexpr std::size_t kEnough = 1000;  // errors, of which the user sees a page
  const std::size_t errors = sink.error_count();
  bool good = true;
  llvm::DenseSet<Symbol> unknown;
  for_each_coordinate(strategy, [&](const UsedCoordinate& used) {
    if (sink.error_count() > errors + kEnough) return;
    const auto known = indices.find(used.name);
    const std::string_view name = context.text(used.name);
    if (known == indices.end()) {
      if ((name == "model" && used.indices.empty()) || !unknown.insert(used.name).second) return;
      report_unknown_name(sink, used.place(), name, names);
      good = false;
      return;
    }
    const std::vector<bool>& exist = known->second;
    if (exist.empty() || ambiguous.contains(used.name)) return;
    const auto wrong = std::find_if(used.indices.begin(), used.indices.end(), [&](std::uint32_t i) { return i >= exist.size() || !exist[i]; });
    if (wrong == used.indices.end() || (used.op != nullptr && is_trimmed(*used.order, *used.op))) return;
    report_missing_index(sink, used.place(), name, *wrong, exist.size());
    good = false;
  });
  return good;
}

}  // namespace piper::passes
