#pragma once
// Random orders as `.pipe` text: one of all legal linearisations of a program's work, cut to ranks.
//
// The work of the program (one vertex per operation: all chunks that it names on a rank) is walked along its data dependencies at random, backwards whole or as `BI` and `BW`, and each
// rank's part is written down: as explicit operations, in numbered slots, or through cursors, queues of weight gradients and `repeat`; neighbours that do not need each other
// may stand in overlap groups, messages and reductions may be named, to be issued later than they could be, and gathers of cut parameters, to be issued earlier. So the order of ranks as a whole is drawn widely, not near any schedule, and every one is legal. Some speak of finer ranks
// (`rank r in pp, d in dp`), replicas each with a text of their own. Some claim only some ranks, one to all but one (`rank r in pp[1..2]`).

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

/// `order { rank r in AXIS { ... } }` for a program without an order, whose work is on one coordinate of `axis` each. Empty, where regions that depend on each
/// other in both directions could only be ordered below what a selector names.
std::string random_order(Context& context, Random& random, const tensor::Graph& model, const directive::Strategy& strategy, std::string_view axis,
                         const RandomOrderOptions& options = {});

}  // namespace piper::test
