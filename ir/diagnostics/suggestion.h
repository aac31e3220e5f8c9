#pragma once
// "did you mean": the known name that a misspelt one is closest to.
//
//   nearest_name("replicat", {"place", "replicate"})  ->  "replicate"

#include <span>
#include <string_view>

namespace piper {

/// The candidate (other than `name`) with the smallest edit distance, the first of equal ones;
/// empty if none is within `max_distance`. Two swapped letters are one edit (`sned`). Names of one
/// or two letters are all near each other.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates,
                              std::size_t max_distance);
/// Within a third of the name's length, at least one edit.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace piper
