#pragma once
// What `show orders` and `show grid` print of an orders table.

#include <string>
#include <vector>

#include "frontend/pictures/grid_text.h"
#include "passes/order/orders_table.h"

namespace piper::views {

/// One line per rank; `&` joins the members of an overlap group, `#1` tells operations of one name apart: pieces of a region, or its calls.
std::string orders_text(const passes::OrdersTable& table);

/// What each operation of each row is called in the text and the grid.
std::vector<std::vector<std::string>> order_labels(const passes::OrdersTable& table);

/// The schema of `show orders --format json`.
std::string orders_json(const passes::OrdersTable& table, const dag::Dag& dag);

/// One row per rank, one column per unit of time: F, BI and BW take one, B takes two, messages none. `dag` is the one of the table.
std::string grid_text(const passes::OrdersTable& table, const dag::Dag& dag, const pictures::Screen& screen);

}  // namespace piper::views
