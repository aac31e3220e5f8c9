#pragma once
// Kinds of work of bars, and their colours on a terminal, in an image and in a page: the same
// everywhere.

#include <array>
#include <cstdint>
#include <string_view>

#include "ir/pass.h"
#include "passes/simulate/timeline.h"

namespace piper::pictures {

enum class Shade : std::uint8_t {
  forward,
  recompute,
  backward,
  input_gradient,
  weight_gradient,
  message,
  collective,
  copy,
  update,
  other
};

struct ShadeRow {
  std::string_view name;                    // in legends: `F`, `B`, `message`
  std::string_view means;                   // `forward`
  std::array<std::string_view, 2> colours;  // of a rank's first stage, and of its others: `#3b6fb6`
  char letter;                              // without colours
  std::uint8_t terminal;                    // of the 256 colours
  std::uint8_t terminal_other;
};

inline constexpr auto kShades = std::to_array<ShadeRow>({
    {"F", "forward", {"#3b6fb6", "#8fb4e3"}, 'F', 68, 110},
    {"R", "forward again", {"#5b5fc7", "#b3b5ec"}, 'R', 62, 104},
    {"B", "backward", {"#2e8b57", "#8fcfa8"}, 'B', 71, 115},
    {"BI", "gradients of inputs", {"#1f9e9e", "#86d3d3"}, 'I', 37, 80},
    {"BW", "gradients of weights", {"#d9922e", "#f0c480"}, 'W', 172, 222},
    {"message", "messages", {"#8a6fb0", "#8a6fb0"}, 'm', 97, 97},
    {"collective", "collectives", {"#c0504d", "#c0504d"}, 'c', 131, 131},
    {"copy", "copies to and from the host", {"#a3a33c", "#a3a33c"}, 'h', 143, 143},
    {"update", "updates", {"#b0568c", "#b0568c"}, 'u', 132, 132},
    {"other", "loads, counts, norms and reports", {"#7f7f7f", "#7f7f7f"}, 'o', 244, 244},
});
constexpr const ShadeRow& row_of(Shade shade) { return kShades[static_cast<std::size_t>(shade)]; }

constexpr Shade shade_of(Pass pass) {
  switch (pass) {
    case Pass::F: return Shade::forward;
    case Pass::R: return Shade::recompute;
    case Pass::B: return Shade::backward;
    case Pass::BI: return Shade::input_gradient;
    case Pass::BW: return Shade::weight_gradient;
  }
  return Shade::other;
}

constexpr Shade shade_of(const passes::Timeline::Operation& operation) {
  if (dag::runs_body(operation.kind)) return shade_of(operation.pass);
  if (dag::is_message(operation.kind)) return Shade::message;
  if (dag::copies_to_or_from_host(operation.kind)) return Shade::copy;
  if (dag::is_collective(operation.kind)) return Shade::collective;
  return dag::writes_state(operation.kind) ? Shade::update : Shade::other;
}

}  // namespace piper::pictures
