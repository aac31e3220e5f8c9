#include "passes/order/grid_line.h"

#include <algorithm>

namespace piper::passes {

std::string grid_line(std::string name, std::span<const GridCell> cells, std::uint32_t first,
                      std::size_t width) {
  std::string line = std::move(name);
  if (first > 0) line += "... ";
  const std::size_t left = line.size();
  const auto column = [&](std::uint32_t time) {
    return left + (std::max(time, first) - first) * width;
  };
  for (const GridCell& cell : cells) {
    if (cell.end <= first) continue;
    for (std::size_t at = line.size(); at < column(cell.start); ++at)
      line += (at - left) % width == 0 ? '.' : ' ';
    if (cell.joined && line.back() == ' ') line.back() = '&';
    line += cell.text;
    if (line.size() < column(cell.end)) line.resize(column(cell.end), ' ');
  }
  while (line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace piper::passes
