#pragma once
// Names of operations in the cells of grids and pictures: `F0` where the rank has one stage, `F2.0`
// where it has several, `Fb1.0` for `F block[1] mb[0]`.
//
//   CellLabels labels(rows);                  // the operations of each row
//   labels.of(0, rows[0][3]);                 // `BI2.1`
//   labels.legend(rows);                      // `BI2.1 is BI stage[2], microbatch 1`

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/pass.h"

namespace piper::pictures {

/// An operation by name. The texts must outlive the labels.
struct Cell {
  Pass pass = Pass::F;
  std::string_view region;  // `stage[2]`, `block[1].rest[0]`
  // The region is the whole of that stage of the only partition.
  std::optional<std::uint32_t> stage;
  std::uint32_t mb = 0, slice = 0;
  std::optional<std::uint32_t> part;  // if the row has several of this name, pass and instance
};
using CellRows = std::vector<std::vector<Cell>>;

class CellLabels {
 public:
  explicit CellLabels(const CellRows& rows);

  std::string of(std::size_t row, const Cell& cell) const;
  /// One line: a cell of each kind that has more than one number, and the meanings of the letters.
  /// Empty if the cells need no explanation.
  std::string legend(const CellRows& rows) const;

 private:
  std::string region(const Cell& cell) const;
  void shorten(const std::set<std::string_view>& regions);

  std::vector<bool> with_region_;                          // per row
  std::map<std::string, std::string> words_;               // for names
  std::map<std::string, std::string, std::less<>> short_;  // for regions that are not stages
};

}  // namespace piper::pictures
