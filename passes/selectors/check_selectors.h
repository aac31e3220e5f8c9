#pragma once
// Checks every coordinate of the selectors of a strategy.
//
//   place layr[0] on p[0]; place stage[7] on p[1]   ->   P3000 for `layr`, P3001 for `stage[7]`

#include <span>
#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/selectors/nameable.h"

namespace piper::passes {

/// One coordinate of a selector, or of an operation of an order.
struct UsedCoordinate {
  Symbol name;
  bool all = true;
  std::span<const std::uint32_t> indices;  // unless `all`
  LocId loc;
  bool rest = false;  // the loose work of that region
  bool cuts = true;   // named regions become chunks; not those of directives about weights
  const directive::Order* order = nullptr;  // of an operation
  const directive::OrderOp* op = nullptr;
  LocId place() const { return op != nullptr && !loc.valid() ? order->written_at(*op) : loc; }
};

/// Calls `each(UsedCoordinate)` for all selectors except those of partitions, and
/// `each_order(order)` for orders, directive by directive.
template <typename Each, typename EachOrder>
void for_each_coordinate(const directive::Strategy& strategy, Each each, EachOrder each_order) {
  const auto selectors = [&](std::span<const directive::Selector> targets, LocId loc, bool cuts) {
    for (const directive::Selector& target : targets) {
      for (const directive::Coordinate& c : target.coordinates) {
        each(UsedCoordinate{c.name, c.all, c.indices,
                            directive::narrowest(c.loc, directive::narrowest(target.loc, loc)),
                            c.rest, cuts});
      }
    }
  };
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* order = std::get_if<directive::Order>(&directive)) each_order(*order);
    const LocId loc = std::visit([](const auto& line) { return line.loc; }, directive);
    selectors(directive::targets_of(directive), loc, !directive::names_weights(directive));
  }
}

/// The same with the coordinates of the operations of orders.
template <typename Each>
void for_each_coordinate(const directive::Strategy& strategy, Each each) {
  for_each_coordinate(strategy, each, [&](const directive::Order& order) {
    for (const directive::OrderOp& op : order.ops) {
      for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
        const directive::OrderCoordinate& c = order.coordinates[op.first_coordinate + i];
        each(UsedCoordinate{c.name, c.all, std::span(&c.index, 1), c.loc, c.rest, true, &order,
                            &op});
      }
    }
  });
}

/// The names of regions and dimensions that directives use, those of partitions' parts first, then
/// in the order of their first uses. Work in no region of these names is loose.
std::vector<Symbol> names_used(const directive::Strategy& strategy);
/// The names of regions whose loose work a selector names; `model` for loose work of the model.
llvm::DenseSet<Symbol> regions_with_named_rest(const directive::Strategy& strategy);

/// Reports names that are neither regions nor dimensions, once each, and indices that none of that
/// name has; the parts of partitions are those that their lines make. `uncertain`: names whose
/// lines are refused, so that their indices are unknown. Returns the unknown names.
llvm::DenseSet<Symbol> check_names(const Nameable& nameable, const directive::Strategy& strategy,
                                   const llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink);
/// Reports selectors whose parts exist while no work has all of them; runs once the model is
/// partitioned. False if there are any.
bool check_parts_meet(const Nameable& nameable, const directive::Strategy& strategy,
                      DiagnosticSink& sink);

}  // namespace piper::passes
