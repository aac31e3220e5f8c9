#pragma once
// Random orders as `.pipe` text: one of all legal linearisations of a program's work, divided among
// ranks.
//
// The work of the program (one vertex per operation: all chunks that it names on a rank) is walked
// along its data dependencies at random, with backwards whole or as `BI` and `BW`. Each rank's part
// is written as explicit operations, in numbered slots, or through cursors, queues of weight
// gradients and `repeat`. Independent neighbours may form overlap groups; messages and reductions
// may be named, to be issued later than possible, and gathers of sharded parameters, to be issued
// earlier. So the orders are drawn widely, not near any schedule, and every one is legal. Some name
// finer ranks (`rank r in pp, d in dp`), with different texts for replicas. Some claim only some
// ranks, one to all but one (`rank r in pp[1..2]`).

#include <string>
#include <string_view>

#include "ir/directive/directive.h"
#include "ir/tensor/graph.h"
#include "tests/support/random_cases.h"

namespace piper::test {

struct RandomOrderOptions {
  bool halves = true;  // some backwards are split
  bool groups = true;  // some neighbours overlap
  bool named = true;   // some messages, reductions and gathers are named
};

/// `order { rank r in AXIS { ... } }` for a program without an order, whose work is on one
/// coordinate of `axis` each. Empty if regions that depend on each other in both directions could
/// only be ordered below the level of selectors.
std::string random_order(Context& context, Random& random, const tensor::Graph& model,
                         const directive::Strategy& strategy, std::string_view axis,
                         const RandomOrderOptions& options = {});

}  // namespace piper::test
