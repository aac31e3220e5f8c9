#pragma once
// A grid on a terminal: one row per rank in columns of equal width, in colours, and folded to the
// width of the screen.

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

/// Each part of folded lines begins with its time, or with the number of its first column if
/// columns take different times; `column` is the time of each. A line that fits is written as by
/// `grid_line`.
std::string grid_text(std::span<const GridRow> rows, const Screen& screen,
                      std::optional<double> column);

}  // namespace piper::pictures
