#include "ir/diagnostics/suggestion.h"

#include <algorithm>

#include "llvm/ADT/StringRef.h"

namespace piper {

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates,
                              std::size_t most) {
  const llvm::StringRef wanted(name.data(), name.size());
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    if (candidate == name || candidate.empty() || std::max(candidate.size(), name.size()) < 3)
      continue;
    const bool permuted = candidate.size() == name.size() &&
                          std::is_permutation(candidate.begin(), candidate.end(), name.begin());
    const std::size_t edits =
        permuted ? 1
                 : wanted.edit_distance(llvm::StringRef(candidate.data(), candidate.size()), true,
                                        static_cast<unsigned>(most));
    if (edits > most || (!best.empty() && edits == most)) continue;
    best = candidate;
    most = edits;
  }
  return best;
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  return nearest_name(name, candidates, std::max<std::size_t>(1, name.size() / 3));
}

}  // namespace piper
