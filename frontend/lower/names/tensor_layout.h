#pragma once
// The places of the elements of parameters in a tensor of a file.
//
//   q[dim: 32, heads: 4, width: 16]: "..."[heads width, dim]
//     ->  dims [64, 32]; q at offset 0 with strides 1 (dim), 512 (heads), 32 (width)

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ast/names.h"
#include "frontend/lower/names/reports.h"

namespace piper::lower {

/// A parameter of the model.
struct NamedShape {
  struct Dim {
    std::string_view name;
    std::int64_t extent = 0;
  };
  std::string name;  // as a path
  std::vector<Dim> dims;
};

struct TensorLayout {
  struct Part {
    std::uint64_t offset = 0;           // of its first element in the tensor
    std::vector<std::int64_t> factors;  // extents of its dimensions, or of their factors
    std::vector<std::int64_t> strides;  // one per factor; 0 for those of `holes`
  };
  std::vector<std::int64_t> dims;    // of the tensor
  std::vector<std::size_t> holes;    // factors whose positions are in the tensor's name, ascending
  std::vector<std::string> factors;  // their names
  std::vector<Part> parts;           // one per parameter of the line

  /// The factor of that name; nothing: an index, or none.
  std::optional<std::size_t> factor(std::string_view name) const;
};

/// The layout of a line of kind `map` that the analysis found no error in. `parameters`: one per
/// name of `line.last`. Nothing, and a diagnostic, if their dimensions do not fit.
std::optional<TensorLayout> lay_out(const ast::NamesLine& line,
                                    const std::vector<NamedShape>& parameters,
                                    NamesReports& reports);

}  // namespace piper::lower
