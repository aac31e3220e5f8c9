#include "ir/diagnostics/suggestion.h"

#include <algorithm>

#include "llvm/ADT/StringRef.h"

namespace piper {

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  const llvm::StringRef wanted(name.data(), name.size());
  unsigned bound = static_cast<unsigned>(std::max<std::size_t>(1, name.size() / 3));
  std::string_view best;
  for (std::string_view candidate : candidates) {
    if (candidate == name || candidate.empty()) continue;
    // A name of one letter is near to every other one.
    if (std::max(candidate.size(), name.size()) < 3) continue;
    const unsigned distance = wanted.edit_distance(llvm::StringRef(candidate.data(), candidate.size()), true, bound);
    if (distance <= bound && (best.empty() || distance < bound)) {
      best = candidate;
      bound = distance;
    }
  }
  return best;
}

}  // namespace piper
