#pragma once
// One rank of a grid: its operations over time, at unit times.
//
//   grid_line("rank 1  ", {{1, 2, "F0"}, {4, 6, "B0"}}, 0, 3)   ->   "rank 1  .  F0 .  .  B0"

#include <cstdint>
#include <span>
#include <string>

namespace piper::passes {

struct GridCell {
  std::uint32_t start = 0, end = 0;
  std::string text;
  bool joined = false;  // to the previous cell, of the same overlap group
};

/// `name` and then ascending cells, from time `first` on; `width` characters per unit of time, a
/// dot for idle time.
std::string grid_line(std::string name, std::span<const GridCell> cells, std::uint32_t first,
                      std::size_t width);

}  // namespace piper::passes
