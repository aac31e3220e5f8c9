#include "frontend/pictures/grid_text.h"

#include <algorithm>

#include "frontend/pictures/picture.h"

namespace piper::pictures {
namespace {

constexpr std::size_t kName = 8;  // at least so wide are names

/// Characters per unit of time: enough for every name in its cell, followed by a blank.
std::size_t width_of(std::span<const GridRow> rows) {
  std::size_t width = 1;
  for (const GridRow& row : rows) {
    for (const passes::GridCell& cell : row.cells) {
      const std::size_t units = std::max<std::size_t>(cell.end - cell.start, 1);
      width = std::max(width, (cell.text.size() + units - 1) / units);
    }
  }
  return width + 1;
}

}  // namespace

std::string grid_text(std::span<const GridRow> rows, const Screen& screen,
                      std::optional<double> column) {
  const std::size_t width = width_of(rows);
  std::size_t left = kName, columns = 0;
  for (const GridRow& row : rows) {
    left = std::max(left, row.name.size() + 1);
    for (const passes::GridCell& cell : row.cells)
      columns = std::max<std::size_t>(columns, cell.end);
  }
  std::vector<bool> inside(columns, false);
  std::vector<CellLine> lines(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const GridRow& row = rows[r];
    const std::string text = passes::grid_line("", row.cells, 0, width);
    std::size_t at = 0;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::size_t begin = std::min<std::size_t>(row.cells[i].start * width, text.size()),
                        end = std::min<std::size_t>(row.cells[i].end * width, text.size());
      for (std::size_t column = row.cells[i].start + 1; column < row.cells[i].end; ++column)
        inside[column] = true;
      if (begin > at) lines[r].append(text.substr(at, begin - at));
      // The blank after a cell separates it from the next one. The line ends with its last letter,
      // the cell does not.
      std::string cell = text.substr(begin, end - begin);
      if (screen.colours) cell.resize((row.cells[i].end - row.cells[i].start) * width, ' ');
      const bool parted = cell.size() > 1 && cell.back() == ' ';
      lines[r].append(cell.substr(0, cell.size() - parted), row.colours[i]);
      if (parted) lines[r].append(" ");
      at = end;
    }
    lines[r].append(text.substr(std::min(at, text.size())));
  }
  const std::size_t room = screen.columns > left + width ? (screen.columns - left) / width
                           : screen.columns > 0          ? 1
                                                         : columns;
  const std::vector<std::size_t> cuts = fold(inside, std::max<std::size_t>(room, 1));
  std::string out;
  for (std::size_t piece = 0; piece + 1 < std::max<std::size_t>(cuts.size(), 2); ++piece) {
    const std::size_t begin = cuts[piece], end = piece + 1 < cuts.size() ? cuts[piece + 1] : 0;
    const std::string at = column ? "time " + time_text(static_cast<double>(begin) * *column,
                                                        passes::Timeline::Unit::cost)
                                  : "column " + std::to_string(begin);
    if (cuts.size() > 2) out += (piece > 0 ? "\n" : "") + at + "\n";
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string line = rows[r].name;
      line.resize(cuts.size() > 2 ? left : std::max(kName, line.size() + 1), ' ');
      line += lines[r].print(begin * width, end * width, screen.colours);
      while (line.back() == ' ') line.pop_back();
      out += line + "\n";
    }
  }
  return out;
}

}  // namespace piper::pictures
