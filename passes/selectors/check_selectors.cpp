#include "passes/selectors/check_selectors.h"

#include <algorithm>
#include <variant>

#include "llvm/ADT/DenseMap.h"
#include "passes/selectors/select.h"
#include "passes/transform/split.h"

namespace piper::passes {

namespace {

/// Reports selectors of which each part exists, but no work has all parts. Those that name something else than regions and dimensions, or an index
/// that does not exist, are told elsewhere.
bool report_apart(const tensor::Graph& model, const directive::Strategy& strategy, const llvm::DenseMap<Symbol, std::vector<bool>>& indices, DiagnosticSink& sink) {
  llvm::DenseSet<RegionId> regions;
  for (const tensor::Node& node : model.nodes()) regions.insert(node.region);
  llvm::DenseSet<Symbol> dims;
  for (const directive::Directive& directive : strategy.directives) {
    const auto* split = std::get_if<directive::Split>(&directive);
    for (std::size_t i = 0; split != nullptr && i < split->into.size(); ++i) dims.insert(split->into[i].name);
  }
  bool good = true;
  const auto check = [&](const directive::Selector& selector) {
    std::vector<const directive::Coordinate*> wanted;
    for (const directive::Coordinate& c : selector.coordinates) {
      if (c.rest || dims.contains(c.name) || (c.all && model.context().text(c.name) == "model")) continue;
      const auto known = indices.find(c.name);
      const bool exists = known != indices.end() && !known->second.empty() && (c.all || !c.indices.empty()) &&
                          std::all_of(c.indices.begin(), c.indices.end(), [&](std::uint32_t i) { return i < known->second.size() && known->second[i]; });
      if (!exists) return;
      wanted.push_back(&c);
    }
    if (wanted.size() < 2) return;
    const bool meets = std::any_of(regions.begin(), regions.end(), [&](RegionId region) {
      return std::all_of(wanted.begin(), wanted.end(), [&](const directive::Coordinate* c) { return has_coordinate(model, region, *c); });
    });
    if (meets) return;
    directive::Selector coordinates = selector;
    coordinates.pass.reset();
    coordinates.part = directive::Part::none;
    report_parts_apart(sink, selector.loc, print_selector(coordinates, model.context().symbols));
    good = false;
  };
  const auto check_all = [&](std::span<const directive::Selector> targets) {
    for (const directive::Selector& target : targets) check(target);
  };
  for (const directive::Directive& directive : strategy.directives) {
    if (!std::holds_alternative<directive::Split>(directive)) check_all(selectors_of(directive));
  }
  return good;
}

struct SelectorsOf {
  using List = std::span<const directive::Selector>;
  List operator()(const directive::Partition&) const { return {}; }
  List operator()(const directive::Order&) const { return {}; }
  List operator()(const directive::Require&) const { return {}; }
  List operator()(const directive::Split& line) const { return line.targets; }
  List operator()(const directive::Place& line) const { return line.targets; }
  List operator()(const directive::Replicate& line) const { return line.targets; }
  List operator()(const directive::Stream& line) const { return line.targets; }
  List operator()(const directive::Recompute& line) const { return line.targets; }
  List operator()(const directive::Offload& line) const { return line.targets; }
  List operator()(const directive::Freeze& line) const { return line.targets; }
};

}  // namespace

std::span<const directive::Selector> selectors_of(const directive::Directive& directive) { return std::visit(SelectorsOf(), directive); }

std::vector<Symbol> names_used(const directive::Strategy& strategy) {
  std::vector<Symbol> names;
  std::vector<bool> seen;  // by symbol
  const auto add = [&](Symbol name) {
    if (name.index() >= seen.size()) seen.resize(name.index() + 1);
    if (seen[name.index()]) return;
    seen[name.index()] = true;
    names.push_back(name);
  };
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&directive)) add(partition->into.name);
  }
  const auto add_order = [&](const directive::Order& order) {
    std::vector<bool> read(order.coordinates.size());  // operations share their coordinates
    for (const directive::OrderOp& op : order.ops) {
      if (op.num_coordinates == 0 || read[op.first_coordinate]) continue;
      read[op.first_coordinate] = true;
      for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
        if (const directive::OrderCoordinate& c = order.coordinates[op.first_coordinate + i]; !c.rest) add(c.name);
      }
    }
  };
  for_each_coordinate(strategy, [&](const UsedCoordinate& used) {
    if (!used.rest && used.cuts) add(used.name);
  }, add_order);
  return names;
}

llvm::DenseSet<Symbol> regions_with_named_rest(const directive::Strategy& strategy) {
  llvm::DenseSet<Symbol> regions;
  const auto add = [&](const auto& coordinate) {
    if (coordinate.rest) regions.insert(coordinate.name);
  };
  for_each_coordinate(strategy, add, [&](const directive::Order& order) { std::for_each(order.coordinates.begin(), order.coordinates.end(), add); });
  return regions;
}

bool report_selectors(const tensor::Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink, llvm::DenseSet<Symbol>* unknown_names) {
  const Context& context = model.context();
  const Batch batch = batch_of(model, strategy);
  llvm::DenseMap<Symbol, std::vector<bool>> indices;  // per name: which exist; none for a part of a partition that failed
  llvm::DenseSet<Symbol> indices_unknown;             // dimensions whose extents differ between splits, or that the batch does not divide by
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
    if (const auto* partition = std::get_if<directive::Partition>(&directive)) {
      std::vector<bool>& exist = indices[partition->into.name];
      if (strategy.missing.model && exist.size() < partition->into.extent) exist.assign(partition->into.extent, true);
    }
    const auto* split = std::get_if<directive::Split>(&directive);
    if (split == nullptr) continue;
    const bool refused = !divides(*split, batch);
    for (const directive::NamedExtent& dim : split->into) {
      if (refused) indices_unknown.insert(dim.name);
      const auto [known, fresh] = indices.try_emplace(dim.name);
      if (!fresh && known->second.size() != dim.extent) indices_unknown.insert(dim.name);
      known->second.assign(dim.extent, true);
    }
  }
  for (const Symbol name : strategy.missing.names) indices[name].clear();
  std::vector<std::string_view> names;
  for (const auto& [name, exist] : indices) names.push_back(context.text(name));
  std::sort(names.begin(), names.end());

  // Loose work is meant by a word that nothing else has.
  bool rest_told = false;
  const auto report_if_region = [&](const UsedCoordinate& used) {
    const auto named = std::find_if(indices.begin(), indices.end(), [&](const auto& each) { return context.text(each.first) == "rest"; });
    if (named == indices.end()) return false;
    sink.report(Code::rest_is_a_region, used.place(), "`rest` names the loose work of a region here, but the program has regions or a dimension of that name")
        .hint("give these another name");
    return true;
  };
  constexpr std::size_t kEnough = 1000;  // errors, of which the user sees a page
  const std::size_t errors = sink.error_count();
  bool good = true;
  llvm::DenseSet<Symbol> unknown;
  for_each_coordinate(strategy, [&](const UsedCoordinate& used) {
    if (sink.error_count() > errors + kEnough) return;
    if (used.rest) {
      good = (rest_told || !(rest_told = report_if_region(used))) && good;
      return;
    }
    const auto known = indices.find(used.name);
    const std::string_view name = context.text(used.name);
    if (known == indices.end()) {
      if (strategy.missing.model || (name == "model" && used.indices.empty()) || !unknown.insert(used.name).second) return;
      report_unknown_name(sink, used.place(), name, names, model.name);
      good = false;
      return;
    }
    const std::vector<bool>& exist = known->second;
    if (exist.empty() || indices_unknown.contains(used.name)) return;
    const auto wrong = std::find_if(used.indices.begin(), used.indices.end(), [&](std::uint32_t i) { return i >= exist.size() || !exist[i]; });
    if (wrong == used.indices.end()) return;
    report_missing_index(sink, used.place(), name, *wrong, exist.size());
    good = false;
  });
  if (unknown_names != nullptr) *unknown_names = std::move(unknown);
  return (strategy.missing.model || report_apart(model, strategy, indices, sink)) && good;
}

}  // namespace piper::passes
