#pragma once
// What `show orders` and `show grid` print of an orders table.

#include <string>
#include <vector>

#include "frontend/pictures/grid_text.h"
#include "frontend/views/simulation.h"
#include "passes/order/orders_table.h"

namespace piper::views {

/// One line per rank; `&` joins the members of an overlap group, `#1` tells operations of one name apart: pieces of a region, or its calls.
std::string orders_text(const passes::OrdersTable& table);

/// What each operation of each row is called in the text and the grid.
std::vector<std::vector<std::string>> order_labels(const passes::OrdersTable& table);

/// The schema of `show orders --format json`.
std::string orders_json(const passes::OrdersTable& table, const dag::Dag& dag);

/// One row per rank, one column per operation: F, R, BI and BW take one, B takes two, messages none. `dag` is the one of the table. Where columns are no units of the
/// timeline of operations, which has two stages per rank or stages of unequal cost, a line says what they are and gives the figures of that timeline; not where `costs` are those of a plan.
std::string grid_text(const passes::OrdersTable& table, const dag::Dag& dag, const pictures::Screen& screen, const SimulationCosts& costs = {});

}  // namespace piper::views
