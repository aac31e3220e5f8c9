#include "passes/selectors/nameable.h"

#include <algorithm>

#include "llvm/ADT/DenseSet.h"
#include "passes/build/segments.h"
#include "passes/selectors/select.h"

namespace piper::passes {

namespace {

class Collector {
 public:
  Collector(const RegionTable& table, llvm::DenseMap<Symbol, Nameable::Name>& regions)
      : table_(table), regions_(regions) {}

  /// False for a region that was added before.
  bool add(RegionId region, LocId loc) {
    if (!region.valid() || !seen_.insert(region).second) return false;
    names_.clear();
    for (RegionId r = region; r.valid(); r = table_.parent(r)) {
      const Symbol name = table_.name(r);
      if (!names_.insert(name).second) continue;  // the innermost region of a name counts
      Nameable::Name& known = regions_[name];
      if (known.exists.empty()) known.loc = loc;
      const std::uint32_t index = table_.index(r);
      if (known.exists.size() <= index) known.exists.resize(index + 1);
      known.exists[index] = true;
    }
    return true;
  }

 private:
  const RegionTable& table_;
  llvm::DenseMap<Symbol, Nameable::Name>& regions_;
  llvm::DenseSet<RegionId> seen_;
  llvm::DenseSet<Symbol> names_;
};

}  // namespace

bool Nameable::has(RegionId region, const directive::Coordinate& coordinate) const {
  return has_coordinate(table, context, region, coordinate);
}

Nameable nameable(const tensor::Graph& model, const directive::Settings& settings) {
  Nameable made{model.context(),
                model.regions,
                model.name,
                true,
                batch_of(model, settings),
                llvm::DenseMap<Symbol, Nameable::Name>(),
                {},
                llvm::DenseMap<Symbol, Nameable::Name>(),
                llvm::DenseMap<Symbol, Nameable::Name>()};
  Collector collector(made.table, made.regions), others(made.table, made.without_loss),
      names(made.table, made.integer_names);
  const std::vector<bool> live = live_forward(model);
  for (std::size_t n = 0; n < live.size(); ++n) {
    const tensor::Node& node = model.nodes()[n];
    if (!live[n]) {
      (names_integers(model, node) ? names : others).add(node.region, node.loc);
    } else if (collector.add(node.region, node.loc)) {
      made.innermost.push_back(node.region);
    }
  }
  return made;
}

Nameable nameable(const dag::Dag& dag) {
  Nameable made{*dag.context,
                dag.regions,
                {},
                false,
                batch_of(dag),
                llvm::DenseMap<Symbol, Nameable::Name>(),
                {},
                llvm::DenseMap<Symbol, Nameable::Name>(),
                llvm::DenseMap<Symbol, Nameable::Name>()};
  Collector collector(made.table, made.regions);
  for (const dag::Chunk& chunk : dag.chunks) {
    if (collector.add(chunk.region, chunk.loc)) made.innermost.push_back(chunk.region);
  }
  return made;
}

}  // namespace piper::passes
