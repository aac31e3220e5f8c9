#include "frontend/pictures/text_table.h"

#include <algorithm>

namespace piper::pictures {

std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       const std::vector<bool>& left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      line +=
          (i == 0 ? "" : "  ") + (i < left.size() && left[i] ? row[i] + blanks : blanks + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace piper::pictures
