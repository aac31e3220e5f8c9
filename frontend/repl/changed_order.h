#pragma once
// An order with two operations swapped or one moved, as a directive that replaces the order of the
// program.

#include <cstddef>
#include <optional>
#include <string>

#include "ir/dag/dag.h"
#include "passes/order/orders_table.h"

namespace piper::repl {

/// The table with operation `from` of a row put before position `to` of it; it leaves its overlap
/// group.
void move_operation(passes::OrdersTable& table, std::size_t row, std::size_t from, std::size_t to);
/// Each takes the other's place, overlap group included.
void swap_operations(passes::OrdersTable& table, std::size_t row, std::size_t a, std::size_t b);

/// The order of the table, with all its ranks and the communication that the DAG's orders name,
/// which stays after its operation, for a strategy of these device sets. Nothing if an order cannot
/// name an operation: a region with several segments.
std::optional<directive::Order> order_of(const passes::OrdersTable& table, const dag::Dag& dag,
                                         DeviceSetTable& device_sets);

}  // namespace piper::repl
