#pragma once
// Events: of all orderings that data and memory need between the streams of one rank, those that are not implied by the others.
//
// An action waits for the end of actions on other streams, in the same step or in the one before. What follows from stream order and from waits already
// there gets none. Linear: one vector of stream positions per action.

#include <cstdint>
#include <span>
#include <vector>

namespace piper::passes {

/// An action of one rank on its stream, numbered within the rank.
struct Slot {
  std::uint32_t stream = 0;
  std::int32_t position = 0;
};

/// The wait for another action of the same rank, `distance` (0 or 1) steps ago.
struct Need {
  std::uint32_t action = 0;
  std::uint32_t distance = 0;
  friend bool operator==(const Need&, const Need&) = default;
};

struct Events {
  std::vector<std::uint32_t> first;  // per action, one more
  std::vector<Need> waits;
};

/// `slots`: actions in issue order; positions count up per stream. `needs` of action i are [first_need[i], first_need[i + 1]): at distance 0 earlier actions.
Events choose_waits(std::span<const Slot> slots, std::size_t streams, std::span<const std::uint32_t> first_need, std::span<const Need> needs);

}  // namespace piper::passes
