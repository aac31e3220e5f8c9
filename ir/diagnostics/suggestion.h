#pragma once
// "did you mean": the known name that a misspelt one is closest to.
//
//   nearest_name("replicat", {"place", "replicate"})  ->  "replicate"

#include <span>
#include <string_view>

namespace piper {

/// The other candidate that is fewest edits away, the first of equal ones; empty when none is within `most`. Letters that changed places are one edit
/// (`sned`), and of two letters or one every name is near to every other.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates, std::size_t most);
/// Within a third of the name's length, at least one edit.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace piper
