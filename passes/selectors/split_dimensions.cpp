#include "passes/selectors/split_dimensions.h"

#include <algorithm>
#include <variant>

namespace piper::passes {

std::vector<directive::NamedExtent> dimensions(const directive::Strategy& strategy) {
  std::vector<directive::NamedExtent> dimensions;
  for (const directive::Directive& directive : strategy.directives) {
    const auto* split = std::get_if<directive::Split>(&directive);
    if (split != nullptr)
      dimensions.insert(dimensions.end(), split->into.begin(), split->into.end());
  }
  return dimensions;
}

bool is_split_into(const directive::Strategy& strategy, Symbol name) {
  return std::any_of(
      strategy.directives.begin(), strategy.directives.end(),
      [&](const directive::Directive& directive) {
        const auto* split = std::get_if<directive::Split>(&directive);
        return split != nullptr &&
               std::any_of(split->into.begin(), split->into.end(),
                           [&](const directive::NamedExtent& dim) { return dim.name == name; });
      });
}

}  // namespace piper::passes
