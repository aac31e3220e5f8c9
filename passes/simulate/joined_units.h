#pragma once
// Work that runs as one: with a cost for pairs, the F and the backward of an overlap group; and the
// chunks of an operation.
//
//   { F stage[0] mb[1] } & { B stage[0] mb[0] }, pair = 3   ->   both run together and take 3

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "passes/order/orders_table.h"
#include "passes/order/work_graph.h"
#include "passes/simulate/work_fraction.h"
#include "passes/simulate/work_times.h"

namespace piper::passes {

/// The operations of one overlap group of a row: [first, end).
struct OpGroup {
  std::size_t first, end;
};

/// The overlap groups of a row, in its order.
std::vector<OpGroup> groups_of(const OrdersTable::Row& row);

/// The chunks of an operation of a row.
std::span<const dag::NodeId> nodes_of(const OrdersTable::Row& row, const OrdersTable::Op& op);

/// Joins units that run as one: the pairs if they have a cost, and with `operations` the chunks of
/// each operation. `pair`: the cost of an F and a backward of the whole model that run together.
/// `rules.cost` holds the cost of every unit by itself before, and those of joined units
/// afterwards; sets `rules.runs_with`.
void join_units(const dag::Dag& dag, const WorkGraph& graph, const OrdersTable& table,
                const WorkFractions& fractions, std::optional<double> pair, bool operations,
                WorkRules& rules);

/// The cost of the work of a rank; units that run as one count once.
double work_of(const WorkGraph& graph, const WorkRules& rules, const OrdersTable::Row& row);

}  // namespace piper::passes
