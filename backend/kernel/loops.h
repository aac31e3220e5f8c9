#pragma once
// Transformations of a nest's loops that keep its results. Statements are in dependence order,
// without passes.
//
//   rows [8, 4], columns [16]: collapse -> columns [512], if every access walks through memory as in one loop
//   columns [4096]: cut(1st column loop, 512) -> columns [8, 512]
//   rows [8, 4]: reorder({1, 0}) -> rows [4, 8]

#include <cstdint>
#include <numeric>
#include <vector>

#include "backend/kernel/kernel.h"

namespace piper::backend {

inline std::int64_t product(const std::vector<std::int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

/// Loops are numbered rows first, then columns.
std::int64_t loop_extent(const Kernel& kernel, std::size_t loop);

/// Joins neighbouring loops; at least one column loop is left.
void collapse(Kernel& kernel);

/// Splits the loop into two: parts of `length`, which must divide it, and the positions in a part.
void cut(Kernel& kernel, std::size_t loop, std::int64_t length);

/// Row loop order[i] becomes the i-th.
void reorder_rows(Kernel& kernel, const std::vector<std::size_t>& order);

/// For a nest whose statements all have one value per row: gives it one column, or turns rows into
/// columns.
void drop_columns(Kernel& kernel);
void rows_to_columns(Kernel& kernel);

/// Sets for every statement whether it has one value per row.
void find_row_statements(Kernel& kernel);
bool is_row_statement(const Kernel& kernel, const Statement& statement, std::size_t num_rows);

}  // namespace piper::backend
