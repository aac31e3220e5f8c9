#pragma once
// The names of regions and dimensions that the lines of a strategy use.
//
//   place layer[0] on p[0]; order with F.stage[1].mb[2]   ->   names_used: layer, stage, mb

#include <span>
#include <vector>

#include "ir/directive/directive.h"
#include "llvm/ADT/DenseSet.h"

namespace piper::passes {

/// One coordinate of a selector, or of an operation of an order.
struct UsedCoordinate {
  Symbol name;
  bool all = true;
  std::span<const std::uint32_t> indices;  // unless `all`
  LocId loc;
  bool loose = false;  // the loose work of that region
  bool cuts = true;    // named regions become chunks; not those of directives about weights
  const directive::Order* order = nullptr;  // of an operation
  const directive::OrderOp* op = nullptr;
  LocId place() const { return op != nullptr && !loc.valid() ? order->written_at(*op) : loc; }
};

/// Calls `visit(UsedCoordinate)` for all selectors except those of partitions, and
/// `visit_order(order)` for orders, directive by directive.
template <typename Visit, typename VisitOrder>
void for_each_coordinate(const directive::Strategy& strategy, Visit visit, VisitOrder visit_order) {
  const auto selectors = [&](std::span<const directive::Selector> targets, LocId loc, bool cuts) {
    for (const directive::Selector& target : targets) {
      for (const directive::Coordinate& c : target.coordinates) {
        visit(UsedCoordinate{c.name, c.all, c.indices,
                             directive::narrowest(c.loc, directive::narrowest(target.loc, loc)),
                             c.rest, cuts});
      }
    }
  };
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* order = std::get_if<directive::Order>(&directive)) visit_order(*order);
    const LocId loc = std::visit([](const auto& line) { return line.loc; }, directive);
    selectors(directive::targets_of(directive), loc, !directive::names_weights(directive));
  }
}

/// The same with the coordinates of the operations of orders.
template <typename Visit>
void for_each_coordinate(const directive::Strategy& strategy, Visit visit) {
  for_each_coordinate(strategy, visit, [&](const directive::Order& order) {
    for (const directive::OrderOp& op : order.ops) {
      for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
        const directive::OrderCoordinate& c = order.coordinates[op.first_coordinate + i];
        visit(UsedCoordinate{c.name, c.all, std::span(&c.index, 1), c.loc, c.rest, true, &order,
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

}  // namespace piper::passes
