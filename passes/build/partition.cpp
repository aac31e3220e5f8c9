#include "passes/build/partition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "ir/diagnostics/counted.h"
#include "ir/tensor/op_rules.h"
#include "passes/build/differentiate.h"
#include "passes/build/segments.h"
#include "passes/selectors/check_cuts.h"
#include "passes/selectors/select.h"
#include "passes/selectors/used_names.h"

namespace piper::passes {

using namespace tensor;

namespace {

/// Consecutive forward operations of R. `inside`: the region into whose contents the unit may be
/// divided.
struct Unit {
  std::size_t begin = 0, end = 0;  // positions in the region's operations
  RegionId inside;
  bool divisible = true;  // false: one operation, or known to be one unit inside too
};

/// The forward operations of the region R that a partition cuts.
using Regions = std::map<RegionId, std::vector<NodeId>>;

class Partitioner {
 public:
  Partitioner(Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink)
      : model_(model), strategy_(strategy), sink_(sink) {}
  bool run();

 private:
  std::string_view text(Symbol symbol) const { return model_.context().text(symbol); }
  std::string region_text(RegionId region) const {
    return model_.regions.print(region, model_.context().symbols);
  }
  bool apply(const directive::Partition& partition);
  Regions instances_of(const directive::Selector& selector) const;
  /// Whether the operations are those of one call, `only`.
  bool is_one_call(std::span<const NodeId> ops, RegionId& only) const;
  bool take_marked(const directive::Partition& partition, const Regions& regions, bool& taken);
  /// Moves loose work beside marked regions into them.
  void take_loose(Symbol name, const Regions& regions);
  /// `path`, which is inside `from`, inside `to`.
  RegionId moved(RegionId path, RegionId from, RegionId to);
  bool cut(const directive::Partition& partition, RegionId region, std::span<const NodeId> ops);
  /// Divides R into at least as many units as stages; nothing after reporting too few operations.
  std::optional<std::vector<Unit>> units_of(const directive::Partition& partition, RegionId region,
                                            std::span<const NodeId> ops);
  /// The first unit of each stage except the first; nothing after reporting sizes that do not fit.
  std::optional<std::vector<std::size_t>> starts_of_parts(const directive::Partition& partition,
                                                          RegionId region,
                                                          std::span<const NodeId> ops,
                                                          std::span<const Unit> units);
  void report_too_few_layers(const directive::Partition& partition, RegionId region,
                             std::span<const NodeId> ops, std::span<const Unit> units,
                             std::span<const std::size_t> starts);
  std::string unit_text(std::span<const NodeId> ops, const Unit& unit) const;
  std::vector<Unit> inner_units(std::span<const NodeId> ops, Unit outer) const;
  std::uint64_t cost_of(std::span<const NodeId> ops, const Unit& unit) const;
  /// The child of `outer` on the way to `region`; invalid when the region is `outer` itself.
  RegionId child_towards(RegionId outer, RegionId region) const;
  void compute_costs();

  Graph& model_;
  const directive::Strategy& strategy_;
  DiagnosticSink& sink_;
  std::vector<std::uint64_t> costs_;  // per forward node, its backward ops included
  std::vector<double> work_;          // the same as the timeline of operations weighs it
  const std::vector<bool> live_ = live_forward(model_);  // stages are made of these
};

void Partitioner::compute_costs() {
  costs_.assign(model_.nodes().size(), 0);
  work_.assign(model_.nodes().size(), 0);
  std::vector<Type> operands, results;
  for (std::size_t n = 0; n < model_.nodes().size(); ++n) {
    const Node& node = model_.nodes()[n];
    operands.clear();
    results.clear();
    for (const ValueId value : model_.operands(node)) operands.push_back(model_.type(value));
    for (std::size_t i = 0; i < node.num_results; ++i)
      results.push_back(model_.type(model_.result(node, i)));
    const Cost cost = tensor::cost(node.op, operands, results, node.attrs);
    const std::size_t owner = node.origin.valid() ? node.origin.index() : n;
    costs_[owner] += static_cast<std::uint64_t>(std::llround(std::max(cost.flops, 8 * cost.bytes)));
    work_[owner] += cost.flops + 4 * cost.bytes;
  }
}

RegionId Partitioner::child_towards(RegionId outer, RegionId region) const {
  RegionId below;
  while (region != outer && region.valid()) {
    below = region;
    region = model_.regions.parent(region);
  }
  return below;
}

std::vector<Unit> Partitioner::inner_units(std::span<const NodeId> ops, Unit outer) const {
  std::vector<Unit> units;
  Unit next{outer.begin, outer.begin, {}, true};
  for (std::size_t i = outer.begin; i < outer.end; ++i) {
    const RegionId region = model_.node(ops[i]).region;
    // Operations of a unit before its region are loose ones, whatever their region.
    bool within = !outer.inside.valid();
    for (RegionId r = region; r.valid() && !within; r = model_.regions.parent(r))
      within = r == outer.inside;
    const RegionId child = within ? child_towards(outer.inside, region) : RegionId();
    if (child != next.inside && next.inside.valid()) {
      units.push_back(next);
      next = {i, i, {}, true};
    }
    if (child.valid()) next.inside = child;
    next.end = i + 1;
  }
  if (next.inside.valid()) {
    units.push_back(next);
  } else if (!units.empty()) {
    units.back().end = outer.end;
  } else {
    for (std::size_t i = outer.begin; i < outer.end; ++i) units.push_back({i, i + 1, {}, false});
  }
  for (Unit& unit : units) unit.divisible = unit.divisible && unit.end - unit.begin > 1;
  return units;
}

std::uint64_t Partitioner::cost_of(std::span<const NodeId> ops, const Unit& unit) const {
  std::uint64_t total = 0;
  for (std::size_t i = unit.begin; i < unit.end; ++i) total += costs_[ops[i].index()];
  return total;
}

std::optional<std::vector<Unit>> Partitioner::units_of(const directive::Partition& partition,
                                                       RegionId region,
                                                       std::span<const NodeId> ops) {
  const std::uint32_t n = partition.into.extent;
  std::vector<Unit> units = inner_units(ops, {0, ops.size(), region, true});
  while (units.size() < n) {
    std::size_t costliest = units.size();
    std::uint64_t most = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
      if (!units[u].divisible) continue;
      const std::uint64_t cost = cost_of(ops, units[u]);
      if (costliest == units.size() || cost > most) {
        costliest = u;
        most = cost;
      }
    }
    if (costliest == units.size()) {
      sink_
          .report(Code::partition_too_fine, directive::narrowest(partition.into.loc, partition.loc),
                  "`{}` has {} operation{}, too few for {} of `{}`", region_text(region),
                  ops.size(), ops.size() == 1 ? "" : "s", n, text(partition.into.name))
          .hint("write `{}: {}` or less", text(partition.into.name), ops.size());
      return std::nullopt;
    }
    const std::vector<Unit> inner = inner_units(ops, units[costliest]);
    units.erase(units.begin() + static_cast<std::ptrdiff_t>(costliest));
    units.insert(units.begin() + static_cast<std::ptrdiff_t>(costliest), inner.begin(),
                 inner.end());
  }
  return units;
}

std::string Partitioner::unit_text(std::span<const NodeId> ops, const Unit& unit) const {
  if (unit.inside.valid())
    return std::string(text(model_.regions.name(unit.inside))) + "[" +
           std::to_string(model_.regions.index(unit.inside)) + "]";
  return std::string(text(model_.value(model_.result(model_.node(ops[unit.begin]))).name));
}

std::optional<std::vector<std::size_t>> Partitioner::starts_of_parts(
    const directive::Partition& partition, RegionId region, std::span<const NodeId> ops,
    std::span<const Unit> units) {
  const std::uint32_t n = partition.into.extent;
  if (partition.sizes.empty()) {
    std::vector<std::uint64_t> costs;
    for (const Unit& unit : units) costs.push_back(cost_of(ops, unit));
    return balanced_cuts(costs, n);
  }
  const std::uint64_t sum =
      std::accumulate(partition.sizes.begin(), partition.sizes.end(), std::uint64_t{0});
  if (sum != units.size()) {
    std::string sizes, list;
    for (const std::uint32_t size : partition.sizes)
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    for (std::size_t u = 0; u < units.size() && u < 12; ++u)
      list += (u == 0 ? "`" : ", `") + unit_text(ops, units[u]) + "`";
    sink_
        .report(Code::partition_sizes, directive::narrowest(partition.sizes_loc, partition.loc),
                "sizes [{}] do not cut the {} of `{}` into {} of at least one", sizes,
                counted(units.size(), "unit"), region_text(region), counted(n, "part"))
        .hint("write {} sizes that add up to {}; the units are {}{}", n, units.size(), list,
              units.size() > 12 ? ", ..." : "");
    return std::nullopt;
  }
  std::vector<std::size_t> starts;
  std::size_t at = 0;
  for (std::uint32_t i = 0; i + 1 < n; ++i) starts.push_back(at += partition.sizes[i]);
  return starts;
}

/// Fewer calls than stages: cuts go through calls, and some stages have only a few cheap
/// operations, or no parameter.
void Partitioner::report_too_few_layers(const directive::Partition& partition, RegionId region,
                                        std::span<const NodeId> ops, std::span<const Unit> units,
                                        std::span<const std::size_t> starts) {
  constexpr double kSmall = 4;  // less than this fraction of the mean
  constexpr std::size_t kShown = 4;
  const std::size_t layers = inner_units(ops, {0, ops.size(), region, true}).size(),
                    parts = starts.size() + 1;
  if (layers >= parts) return;
  std::vector<bool> is_param(model_.values().size(), false);
  for (const tensor::Param& param : model_.params) is_param[param.value.index()] = true;
  const auto reads_param = [&](NodeId node) {
    const auto operands = model_.operands(model_.node(node));
    return std::any_of(operands.begin(), operands.end(),
                       [&](ValueId value) { return is_param[value.index()]; });
  };
  std::vector<double> work(1, 0);
  std::vector<bool> has_param(1, false);
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (work.size() < parts && u == starts[work.size() - 1])
      work.push_back(0), has_param.push_back(false);
    for (std::size_t i = units[u].begin; i < units[u].end; ++i) {
      work.back() += work_[ops[i].index()];
      has_param.back() = has_param.back() || reads_param(ops[i]);
    }
  }
  const double total = std::accumulate(work.begin(), work.end(), 0.0);
  std::string named;
  std::size_t small = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    if (work[part] * static_cast<double>(parts) * kSmall >= total && has_param[part]) continue;
    if (++small <= kShown)
      named += (small == 1 ? "`" : ", `") + std::string(text(partition.into.name)) + "[" +
               std::to_string(part) + "]`";
  }
  if (small == 0) return;
  if (small > kShown) named += " and " + std::to_string(small - kShown) + " more";
  const std::string whole = region.valid() ? region_text(region) : "model";
  sink_
      .report(
          Code::more_stages_than_layers, directive::narrowest(partition.into.loc, partition.loc),
          "`{}` is made of {}, too few for {} parts: {} {} no parameter, or less than a quarter of the work of a part on average",
          whole, counted(layers, "layer"), parts, named, small == 1 ? "has" : "have")
      .hint("make at most {}, or give the model more layers", counted(layers, "part"));
}

RegionId Partitioner::moved(RegionId path, RegionId from, RegionId to) {
  std::vector<RegionId> inside;
  for (RegionId r = path; r != from && r.valid(); r = model_.regions.parent(r)) inside.push_back(r);
  for (std::size_t i = inside.size(); i-- > 0;)
    to = model_.regions.child(to, model_.regions.name(inside[i]), model_.regions.index(inside[i]));
  return to;
}

bool Partitioner::cut(const directive::Partition& partition, RegionId region,
                      std::span<const NodeId> ops) {
  const std::optional<std::vector<Unit>> units = units_of(partition, region, ops);
  if (!units) return false;
  const std::optional<std::vector<std::size_t>> starts =
      starts_of_parts(partition, region, ops, *units);
  if (!starts) return false;
  if (partition.sizes.empty()) report_too_few_layers(partition, region, ops, *units, *starts);

  // Every region path inside R gets the stage behind R.
  std::map<std::pair<RegionId, std::uint32_t>, RegionId> known;
  const auto move = [&](RegionId path, std::uint32_t stage) {
    const auto [entry, fresh] = known.try_emplace({path, stage});
    if (fresh)
      entry->second = moved(path, region, model_.regions.child(region, partition.into.name, stage));
    return entry->second;
  };
  std::uint32_t stage = 0;
  for (std::size_t u = 0; u < units->size(); ++u) {
    if (stage < starts->size() && u == (*starts)[stage]) ++stage;
    for (std::size_t i = (*units)[u].begin; i < (*units)[u].end; ++i) {
      Node& node = model_.mutable_nodes()[ops[i].index()];
      node.region = move(node.region, stage);
    }
  }
  return true;
}

bool Partitioner::take_marked(const directive::Partition& partition, const Regions& regions,
                              bool& taken) {
  const Symbol name = partition.into.name;
  const auto inside = [&](RegionId region) {  // inside one of the partitioned regions
    for (RegionId r = region;; r = model_.regions.parent(r)) {
      if (regions.count(r) != 0) return true;
      if (!r.valid()) return false;
    }
  };
  std::vector<std::uint32_t> indices;
  LocId elsewhere;
  taken = false;
  for (const Node& node : model_.nodes()) {
    if (node.pass != Pass::F) continue;
    for (RegionId r = node.region; r.valid(); r = model_.regions.parent(r)) {
      if (model_.regions.name(r) != name) continue;
      if (inside(model_.regions.parent(r))) {
        indices.push_back(model_.regions.index(r));
      } else {
        elsewhere = node.loc;
      }
      taken = true;
      break;
    }
  }
  if (!taken) return true;
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  if (indices.empty()) {
    sink_
        .report(Code::partition_name_taken, directive::narrowest(partition.into.loc, partition.loc),
                "`{}` already names regions outside `{}`", text(name),
                print_selector(partition.region, model_.context().symbols))
        .related(elsewhere, "this stands in a region `{}`", text(name))
        .hint("give the parts another name");
    return false;
  }
  if (indices.size() != partition.into.extent || !partition.sizes.empty()) {
    auto builder = sink_.report(
        Code::partition_differs_from_model, directive::narrowest(partition.into.loc, partition.loc),
        "the model marks {} region{} `{}` itself; {}", indices.size(),
        indices.size() == 1 ? "" : "s", text(name),
        partition.sizes.empty() ? "a partition of that name takes them as they are"
                                : "their sizes are given by the model");
    builder.hint("write `into {}: {}`{}, or give the parts another name", text(name),
                 indices.size(), partition.sizes.empty() ? "" : " without sizes");
    return false;
  }
  return true;
}

/// As in a partition, a marked region takes the operations before it, and the last one also those
/// after it, within the narrowest region that contains marked ones. A region, or the rest of a
/// region, that a directive names is not moved.
void Partitioner::take_loose(Symbol name, const Regions& regions) {
  const llvm::DenseSet<Symbol> rest_of = regions_with_named_rest(strategy_);
  llvm::DenseSet<Symbol> named;
  for (const Symbol used : names_used(strategy_)) named.insert(used);
  std::vector<NodeId> ops;
  for (const auto& [region, inside] : regions) ops.insert(ops.end(), inside.begin(), inside.end());
  std::sort(ops.begin(), ops.end());
  const auto marked = [&](RegionId region) {
    for (; regions.count(region) == 0; region = model_.regions.parent(region)) {
      if (model_.regions.name(region) == name) return region;
    }
    return RegionId();
  };
  const auto rest_is_named = [&](RegionId region) {
    while (region.valid() && !named.contains(model_.regions.name(region)))
      region = model_.regions.parent(region);
    return rest_of.contains(region.valid() ? model_.regions.name(region)
                                           : model_.context().symbol("model"));
  };
  // Per region with marked ones inside, up to the partitioned one: the next marked region, in a
  // walk from the end of the program.
  std::map<RegionId, RegionId> next;
  const auto note = [&](RegionId mark) {
    for (RegionId outer = mark; regions.count(outer) == 0;)
      next[outer = model_.regions.parent(outer)] = mark;
  };
  for (const NodeId op : ops) {
    if (const RegionId mark = marked(model_.node(op).region); mark.valid()) note(mark);
  }
  for (std::size_t i = ops.size(); i-- > 0;) {
    Node& node = model_.mutable_nodes()[ops[i].index()];
    if (const RegionId mark = marked(node.region); mark.valid()) {
      note(mark);
      continue;
    }
    bool stays = false;
    RegionId outer = node.region;
    for (; next.count(outer) == 0 && regions.count(outer) == 0;
         outer = model_.regions.parent(outer))
      stays = stays || named.contains(model_.regions.name(outer));
    if (!stays && next.count(outer) != 0 && !rest_is_named(outer))
      node.region = moved(node.region, outer, next[outer]);
  }
}

/// The operations of every instance: the outermost region on the path at which all coordinates
/// hold.
Regions Partitioner::instances_of(const directive::Selector& selector) const {
  Regions regions;
  std::map<RegionId, std::optional<RegionId>> known;
  const auto holds = [&](RegionId region) {
    return std::all_of(selector.coordinates.begin(), selector.coordinates.end(),
                       [&](const directive::Coordinate& c) {
                         return has_coordinate(model_.regions, model_.context(), region, c);
                       });
  };
  for (std::size_t n = 0; n < model_.nodes().size(); ++n) {
    const Node& node = model_.nodes()[n];
    if (!live_[n]) continue;
    const auto [entry, fresh] = known.try_emplace(node.region);
    if (fresh) {
      for (RegionId r = node.region;; r = model_.regions.parent(r)) {
        const bool all = holds(r);
        if (all) entry->second = r;
        if (!all || !r.valid()) break;
      }
    }
    if (entry->second) regions[*entry->second].push_back(NodeId::at(n));
  }
  return regions;
}

bool Partitioner::is_one_call(std::span<const NodeId> ops, RegionId& only) const {
  only = {};
  for (const NodeId op : ops) {
    const RegionId child = child_towards(RegionId(), model_.node(op).region);
    if (!child.valid() || (only.valid() && child != only)) return false;
    only = child;
  }
  return only.valid();
}

bool Partitioner::apply(const directive::Partition& partition) {
  Regions regions = instances_of(partition.region);
  if (regions.empty()) {
    sink_.report(Code::selector_matches_nothing,
                 directive::narrowest(partition.region.loc, partition.loc),
                 "`{}` matches nothing in the model",
                 print_selector(partition.region, model_.context().symbols));
    return false;
  }
  // If the model consists of one call, that call is cut.
  if (const auto root = regions.find(RegionId()); root != regions.end()) {
    RegionId only;
    if (is_one_call(root->second, only) &&
        text(model_.regions.name(only)) != text(partition.into.name)) {
      std::vector<NodeId> ops = std::move(root->second);
      regions.erase(root);
      regions.emplace(only, std::move(ops));
    }
  }
  bool taken = false;
  if (!take_marked(partition, regions, taken)) return false;
  if (taken) take_loose(partition.into.name, regions);
  for (const auto& [region, ops] : regions) {
    if (!taken && !cut(partition, region, ops)) return false;
  }
  for (Node& node : model_.mutable_nodes()) {
    if (node.origin.valid()) node.region = model_.node(node.origin).region;
  }
  return true;
}

bool Partitioner::run() {
  const std::vector<const directive::Partition*> partitions = in_order(strategy_);
  if (partitions.empty()) return true;
  compute_costs();
  return std::all_of(partitions.begin(), partitions.end(),
                     [&](const directive::Partition* each) { return apply(*each); });
}

}  // namespace

bool partition(Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  return Partitioner(model, strategy, sink).run();
}

bool partition_forward(Graph& model, const directive::Strategy& strategy, DiagnosticSink& sink) {
  Graph cut = model;
  if (!differentiate(cut, sink) || !partition(cut, strategy, sink)) return false;
  model.regions = cut.regions;
  for (std::size_t n = 0; n < model.nodes().size(); ++n)
    model.mutable_nodes()[n].region = cut.nodes()[n].region;
  return true;
}

namespace {

__extension__ using Wide = unsigned __int128;

/// The most steps of a division into even runs: runs times the square of the number of costs.
constexpr std::size_t kMaxEvenSteps = 100'000'000;

/// The cuts with the smallest sum of squares among those with no run above `bound`; there are some.
std::vector<std::size_t> even_cuts(std::span<const std::uint64_t> costs, std::size_t n,
                                   std::uint64_t bound) {
  constexpr Wide kNone = ~Wide{0};
  const std::size_t units = costs.size();
  // By the units from i on, in so many runs: the sum of squares, and the end of the first run.
  std::vector<Wide> before(units + 1, kNone), sums(units + 1, kNone);
  std::vector<std::vector<std::uint32_t>> ends(n, std::vector<std::uint32_t>(units, 0));
  before[units] = 0;
  for (std::size_t runs = 1; runs <= n; ++runs) {
    std::fill(sums.begin(), sums.end(), kNone);
    for (std::size_t i = 0; i + runs <= units; ++i) {
      std::uint64_t cost = 0;
      for (std::size_t end = i + 1; end <= units; ++end) {
        cost += costs[end - 1];
        if (cost > bound) break;
        if (before[end] == kNone) continue;
        const Wide sum = before[end] + Wide{cost} * cost;
        if (sum >= sums[i]) continue;
        sums[i] = sum;
        ends[runs - 1][i] = static_cast<std::uint32_t>(end);
      }
    }
    std::swap(before, sums);
  }
  std::vector<std::size_t> starts;
  std::size_t at = 0;
  for (std::size_t runs = n; runs > 1; --runs) starts.push_back(at = ends[runs - 1][at]);
  return starts;
}

}  // namespace

std::vector<std::size_t> balanced_cuts(std::span<const std::uint64_t> costs, std::size_t n) {
  const std::size_t units = costs.size();
  std::uint64_t low = 0, high = 0;
  for (const std::uint64_t cost : costs) {
    low = std::max(low, cost);
    high += cost;
  }
  // parts[i]: the minimum number of runs for units i.. under a bound.
  std::vector<std::size_t> parts(units + 1);
  const auto fits = [&](std::uint64_t bound) {
    std::size_t runs = 0;
    std::uint64_t run = 0;
    for (const std::uint64_t cost : costs) {
      if (runs == 0 || run + cost > bound) {
        ++runs;
        run = 0;
      }
      run += cost;
    }
    return runs <= n;
  };
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (units * units <= kMaxEvenSteps / n) return even_cuts(costs, n, low);
  parts[units] = 0;
  std::uint64_t window = 0;
  for (std::size_t begin = units, end = units; begin-- > 0;) {
    window += costs[begin];
    while (window > low) window -= costs[--end];
    parts[begin] = parts[end] + 1;
  }
  std::vector<std::size_t> starts;
  std::size_t at = 0;
  for (std::size_t left = n - 1; left > 0; --left) {
    ++at;  // the earliest cut after which the rest still fits
    while (parts[at] > left) ++at;
    starts.push_back(at);
  }
  return starts;
}

}  // namespace piper::passes
