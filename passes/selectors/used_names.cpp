#include "passes/selectors/used_names.h"

#include <variant>

namespace piper::passes {

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
    if (const auto* partition = std::get_if<directive::Partition>(&directive))
      add(partition->into.name);
  }
  const auto add_order = [&](const directive::Order& order) {
    std::vector<bool> read(order.coordinates.size());  // operations share their coordinates
    for (const directive::OrderOp& op : order.ops) {
      if (op.num_coordinates == 0 || read[op.first_coordinate]) continue;
      read[op.first_coordinate] = true;
      for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
        if (const directive::OrderCoordinate& c = order.coordinates[op.first_coordinate + i];
            !c.rest)
          add(c.name);
      }
    }
  };
  for_each_coordinate(
      strategy,
      [&](const UsedCoordinate& used) {
        if (!used.loose && used.cuts) add(used.name);
      },
      add_order);
  return names;
}

llvm::DenseSet<Symbol> regions_with_named_rest(const directive::Strategy& strategy) {
  llvm::DenseSet<Symbol> regions;
  const auto add = [&](const UsedCoordinate& used) {
    if (used.loose) regions.insert(used.name);
  };
  for_each_coordinate(strategy, add, [&](const directive::Order& order) {
    for (const directive::OrderCoordinate& c : order.coordinates) {
      if (c.rest) regions.insert(c.name);
    }
  });
  return regions;
}

}  // namespace piper::passes
