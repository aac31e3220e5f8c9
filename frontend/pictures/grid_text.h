#pragma once
// A grid on a terminal: one row per rank in columns of equal width, in colours, and folded to the width of the screen.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/pictures/screen.h"
#include "passes/order/grid_line.h"

namespace piper::pictures {

struct GridRow {
  std::string name;                     // `rank 0`
  std::vector<passes::GridCell> cells;  // ascending
  std::vector<std::uint8_t> colours;    // per cell, of the 256 of terminals
};

/// Where lines are folded each piece says the time at which it begins, or the number of its first column where columns take different times; `column` is
/// what each takes. A line that fits stands alone, as `grid_line` writes it.
std::string grid_text(std::span<const GridRow> rows, const Screen& screen, std::optional<double> column);

}  // namespace piper::pictures
