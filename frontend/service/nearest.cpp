#include "frontend/service/nearest.h"

#include <vector>

#include "ir/diagnostics/suggestion.h"

namespace piper {

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string_view> names(candidates.begin(), candidates.end());
  const std::string_view best = nearest_name(word, names, word.size() / 3 + 1);
  return best.empty() ? std::nullopt : std::optional<std::string>(best);
}

std::string quoted_list(std::span<const std::string> names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "`" : ", `") + name + "`";
  return list;
}

}  // namespace piper
