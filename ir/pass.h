#pragma once
// The passes of training: forward, the forward again where its values were not kept (`recompute`),
// backward, and the two halves of a backward (input gradients, weight gradients). In the order in
// which an instance has them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace piper {

enum class Pass : std::uint8_t { F, R, B, BI, BW };
inline constexpr std::array kAllPasses = {Pass::F, Pass::R, Pass::B, Pass::BI, Pass::BW};
inline constexpr std::size_t kPasses = kAllPasses.size();

/// Whether the pass is a backward: `B`, `BI` or `BW`.
constexpr bool is_backward(Pass pass) { return pass >= Pass::B; }

/// `F`, `R`, `B`, `BI`, `BW`.
constexpr std::string_view pass_name(Pass pass) {
  constexpr std::array<std::string_view, kPasses> kNames = {"F", "R", "B", "BI", "BW"};
  return kNames[static_cast<std::size_t>(pass)];
}

constexpr std::optional<Pass> parse_pass(std::string_view text) {
  for (const Pass pass : kAllPasses) {
    if (text == pass_name(pass)) return pass;
  }
  return std::nullopt;
}

}  // namespace piper
