#pragma once
// Names of parameters as paths, and the paths of a `names` item that match them.
//
//   block.3.norm.1.gain   ->   parts (block, 3), (norm, 1); last gain
//   block[l].norm[1].gain matches it with l = 3

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ast/names.h"

namespace piper::lower {

struct ParameterPath {
  struct Part {
    std::string_view name;
    std::uint32_t position = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::vector<Part> parts;
  std::string_view last;
};

/// The path of a name of tensor::Graph::params, which the views are of.
ParameterPath parameter_path(std::string_view name);

/// `block[3].norm[1].gain`: as a line writes it, with its positions; a part at position 0 has none.
std::string path_text(const ParameterPath& path);
/// The same without positions: `block.norm.gain`.
std::string pattern_of(const ParameterPath& path);

/// A parameter that a line names.
struct PathMatch {
  std::vector<std::uint32_t> indices;  // values of the line's indices, in the order of its parts
  std::size_t parameter = 0;           // position in NamesLine::last
};

/// Nothing: the line does not name it. A part without an index is the one at position 0.
std::optional<PathMatch> match(const ast::NamesLine& line, const ParameterPath& path);

}  // namespace piper::lower
