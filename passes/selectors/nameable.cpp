#include "passes/selectors/nameable.h"

#include <algorithm>

#include "llvm/ADT/DenseSet.h"
#include "passes/build/pieces.h"
#include "passes/selectors/select.h"

namespace piper::passes {

namespace {

class Collector {
 public:
  explicit Collector(Nameable& to) : to_(to) {}

  void add(RegionId region, LocId loc) {
    if (!region.valid() || !seen_.insert(region).second) return;
    to_.innermost.push_back(region);
    names_.clear();
    for (RegionId r = region; r.valid(); r = to_.table.parent(r)) {
      const Symbol name = to_.table.name(r);
      if (!names_.insert(name).second) continue;  // the innermost of a name counts
      Nameable::Name& known = to_.regions[name];
      if (known.exists.empty()) known.loc = loc;
      const std::uint32_t index = to_.table.index(r);
      if (known.exists.size() <= index) known.exists.resize(index + 1);
      known.exists[index] = true;
    }
  }

 private:
  Nameable& to_;
  llvm::DenseSet<RegionId> seen_;
  llvm::DenseSet<Symbol> names_;
};

}  // namespace

bool Nameable::has(RegionId region, const directive::Coordinate& coordinate) const { return has_coordinate(table, context, region, coordinate); }

Nameable nameable(const tensor::Graph& model, const directive::Settings& settings) {
  Nameable made{model.context(), model.regions, model.name, true, batch_of(model, settings), llvm::DenseMap<Symbol, Nameable::Name>(), {}};
  Collector collector(made);
  const std::vector<bool> live = live_forward(model);
  for (std::size_t n = 0; n < live.size(); ++n) {
    if (live[n]) collector.add(model.nodes()[n].region, model.nodes()[n].loc);
  }
  return made;
}

Nameable nameable(const dag::Dag& dag) {
  Nameable made{*dag.context, dag.regions, {}, false, batch_of(dag), llvm::DenseMap<Symbol, Nameable::Name>(), {}};
  Collector collector(made);
  for (const dag::Chunk& chunk : dag.chunks) collector.add(chunk.region, chunk.loc);
  return made;
}

}  // namespace piper::passes
