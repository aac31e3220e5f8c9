#pragma once
// The passes of training: forward, backward, and the two halves of a backward (input gradients, weight gradients).

#include <cstdint>
#include <optional>
#include <string_view>

namespace piper {

enum class Pass : std::uint8_t { F, B, BI, BW };

/// `F`, `B`, `BI`, `BW`.
constexpr std::string_view pass_name(Pass pass) {
  constexpr std::string_view kNames[] = {"F", "B", "BI", "BW"};
  return kNames[static_cast<std::size_t>(pass)];
}

constexpr std::optional<Pass> parse_pass(std::string_view text) {
  if (text == "F") return Pass::F;
  if (text == "B") return Pass::B;
  if (text == "BI") return Pass::BI;
  if (text == "BW") return Pass::BW;
  return std::nullopt;
}

}  // namespace piper
