#pragma once
// The order in which combinations of choices are tried.
//
//   search_choices({3, 2}, {0, 0}, {.tries = 100}, judge);   // all six, the initial one first

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace piper::views {

/// The position of the chosen value of each hole.
using Choice = std::vector<std::size_t>;

/// The figure to make small; nothing if the combination is refused.
using Judge = std::function<std::optional<double>(const Choice&)>;

struct SearchLimits {
  std::uint64_t tries = 0;
  std::uint64_t seed = 0;
  std::function<bool()> stopped = [] { return false; };
};

/// The number of combinations of so many values of each hole; the largest number if it overflows.
std::uint64_t combinations(const std::vector<std::size_t>& sizes);

/// Judges different combinations, `initial` first: all of them if there are at most `tries`, else
/// `tries` of them by descent. A descent changes one hole at a time to its best value until no
/// change is better, and begins again at a random combination. The order depends on the arguments
/// and the judgements alone. Every size is at least 1.
void search_choices(const std::vector<std::size_t>& sizes, const Choice& initial,
                    const SearchLimits& limits, const Judge& judge);

}  // namespace piper::views
