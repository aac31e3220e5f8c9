#include "frontend/service/nearest.h"

#include <algorithm>

#include "llvm/ADT/StringRef.h"

namespace piper {

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  unsigned best_distance = static_cast<unsigned>(word.size() / 3 + 1);
  for (const std::string& candidate : candidates) {
    const unsigned distance = llvm::StringRef(word.data(), word.size()).edit_distance(candidate, true, best_distance + 1);
    // A name of one letter is near to every other one.
    if (distance >= std::max(word.size(), candidate.size())) continue;
    if (distance <= best_distance && (!best || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string quoted_list(std::span<const std::string> names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "`" : ", `") + name + "`";
  return list;
}

}  // namespace piper
