#pragma once
// The names that are visible at a place: locals with their types, regions, dimensions.

#include <string>
#include <vector>

#include "frontend/lsp/request.h"

namespace piper::lsp {

struct LocalName {
  std::string name;
  sema::Type type;            // error: not known
  std::string detail;         // `parameter`, `cursor`
  bool is_dimension = false;  // a dimension has this name, and perhaps an integer, too
};

/// The locals that the statement at a byte of the file can use, the innermost last.
std::vector<LocalName> locals_at(Request& request, std::uint32_t at);

/// Names of parts of the model from the directives around a place and of called schedules; in a
/// train also the regions of its model.
struct Labels {
  std::vector<std::string> regions;     // `stage`, `block`: without `model`
  std::vector<std::string> dimensions;  // `mb`, `copy`
};
Labels labels_at(Request& request, std::uint32_t at);

}  // namespace piper::lsp
