#pragma once
// Orders that a search begins with: list schedules, the published orders that fit the placement,
// and published heuristics. Each file has one family; an order that does not keep the cap is left
// out, and so is one whose ranks would wait for each other forever.

#include <functional>

#include "ir/orders/search/problem.h"

namespace piper::orders {

/// Receives an order. False: no further ones are wanted.
using TakeStart = std::function<bool(CodeLists)>;

/// The placements that published orders are made for.
enum class Family : std::uint8_t {
  line,      // part s on the s-th rank
  loop,      // part s on rank s mod p, several parts on each rank
  folded,    // part s and part 2p-1-s on the s-th rank
  mirrored,  // two groups of as many instances, each on a line, in opposite directions
  other,
};
struct Shape {
  Family family = Family::other;
  std::uint32_t p = 0, m = 0;          // ranks, instances of a group
  std::vector<std::uint32_t> rank_of;  // by position along the placement: the rank
};
Shape shape_of(const SearchProblem& problem);

/// List scheduling with each order of preference, within the cap.
void greedy_starts(const PlacedParts& work, const SearchProblem& problem, const TakeStart& take);
/// GPipe, 1F1B, ZB-H1 and ZB-H2 on a line, the interleaved ones on a loop, ZB-V on a folded line,
/// DualPipe, without pairs, on a mirrored one.
void published_starts(const SearchProblem& problem, const Shape& shape, const TakeStart& take);
/// The heuristic of ZB-1p and ZB-2p (arXiv 2401.10241), on a line.
void line_heuristic(const SearchProblem& problem, const Shape& shape, const TakeStart& take);
/// The heuristic of ZB-V (arXiv 2401.10241), on a folded line.
void folded_heuristic(const SearchProblem& problem, const Shape& shape, const TakeStart& take);
/// Building blocks (arXiv 2405.15362), on a folded line.
void block_starts(const SearchProblem& problem, const Shape& shape, const TakeStart& take);

}  // namespace piper::orders
