#pragma once
// The output of `show orders` and `show grid` for an orders table.

#include <string>
#include <vector>

#include "frontend/pictures/grid_text.h"
#include "frontend/views/simulation.h"
#include "passes/order/orders_table.h"

namespace piper::views {

/// One line per rank; `&` joins the members of an overlap group, `#1` distinguishes operations of
/// one name: segments of a region, or its calls.
std::string orders_text(const passes::OrdersTable& table);

/// The name of each operation of each row in the text and the grid.
std::vector<std::vector<std::string>> order_labels(const passes::OrdersTable& table);

/// The schema of `show orders --format json`.
std::string orders_json(const passes::OrdersTable& table, const dag::Dag& dag);

/// One row per rank, one column per operation: F, R, BI and BW take one, B takes two, messages
/// none. `dag` is the one of the table. If columns are not units of the timeline of operations (two
/// stages per rank, or stages of unequal cost), a line explains them and gives the figures of that
/// timeline, unless `costs` are those of a plan.
std::string grid_text(const passes::OrdersTable& table, const dag::Dag& dag,
                      const pictures::Screen& screen, const SimulationCosts& costs = {});

}  // namespace piper::views
