#pragma once
// Deadlocks of orders that contradict the data flow: the operation at which each rank is stuck, the
// one it waits for, and the rank that has it later.
//
//   `pp[0]` is at `BI stage[0] mb[0]` and waits for `BI stage[1] mb[0]`
//   `pp[1]` is at `F stage[1] mb[1]` and waits for `F stage[0] mb[1]`

#include <span>
#include <string>
#include <vector>

#include "passes/order/order_cycle_claims.h"

namespace piper::passes {

/// A stuck rank.
struct Standing {
  std::uint32_t claim;
  std::uint32_t at;  // the next unit of its order
  // The unit that `at` waits for; it is the next unit of the next rank of the cycle, or a later
  // one.
  std::uint32_t want;
};

/// The shortest cycle of ranks: each waits for the next, the last for the first. `done`: the units
/// that a topological sort of `graph` and the edges of the claims reached.
std::vector<Standing> deadlock_cycle(const OrderClaims& claims, const WorkGraph& graph,
                                     std::span<const std::uint32_t> done);

/// The operations of the stuck ranks so far, at unit times, one line each, with the next operation
/// in brackets. Shows the end of long orders, and some of many ranks.
std::vector<std::string> standing_grid(const dag::Dag& dag, const OrderClaims& claims,
                                       const WorkGraph& graph, const Adjacency& more,
                                       std::span<const Standing> cycle);

}  // namespace piper::passes
