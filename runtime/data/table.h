#pragma once
// Numbers of a text file: a header line that names the columns, and below it a line of numbers per
// sample. Columns are separated by commas, or by white space if the header has no comma.
//
// An input of one number per sample has the column of its name, one of n numbers the columns `x.0`
// to `x.n-1`, in row-major order; other columns are skipped.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/data/file_text.h"
#include "runtime/failure.h"

namespace piper::runtime {

/// An input that a model reads from a table.
struct TableInput {
  std::string_view name;
  std::uint64_t numbers = 1;  // per sample
  bool integers = false;
  bool single = false;  // taken as f32: a number beyond its range is refused
};

struct Table {
  std::uint64_t rows = 0;
  /// Per input: its numbers, row by row.
  std::vector<std::variant<std::vector<double>, std::vector<std::int64_t>>> values;
};

/// Null, with the reason and the location in the file in `failure`, for an entry that is not a
/// number, a line with too few or too many, a column that is missing or occurs twice, or no line at
/// all. `path` is the file's name in the failure.
std::shared_ptr<const Table> read_table(const std::string& path, const Text& text,
                                        std::span<const TableInput> inputs, Failure& failure);

}  // namespace piper::runtime
