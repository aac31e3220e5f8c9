#pragma once
// Where the ranks stand still when their orders contradict the data flow: the operation that each of them is at, what it waits for, and who has that only later.
//
//   `pp[0]` is at `BI stage[0] mb[0]` and waits for `BI stage[1] mb[0]`
//   `pp[1]` is at `F stage[1] mb[1]` and waits for `F stage[0] mb[1]`

#include <span>
#include <string>
#include <vector>

#include "passes/order/order_cycle_claims.h"

namespace piper::passes {

/// A rank that stands still.
struct Standing {
  std::uint32_t claim;
  std::uint32_t at;    // the unit that its order has next
  std::uint32_t want;  // the unit that this waits for; the next rank of the circle has it, at the place where it stands or later
};

/// The fewest ranks that wait for each other in a circle: each for the next, the last for the first. `done`: the units that a topological sort of `graph`
/// and the edges of the claims reached.
std::vector<Standing> standing_circle(const OrderClaims& claims, const WorkGraph& graph, std::span<const std::uint32_t> done);

/// What the ranks of the circle have done before they stand, at unit times, one line each, and in brackets what they are at. Of long orders the end, of many ranks some.
std::vector<std::string> standing_grid(const dag::Dag& dag, const OrderClaims& claims, const WorkGraph& graph, const Adjacency& more, std::span<const Standing> circle);

}  // namespace piper::passes
