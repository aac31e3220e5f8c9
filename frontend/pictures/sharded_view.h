#pragma once
// State and traffic of buckets beside the formulas of ZeRO, printed below the tables of
// `show memory` and `show comm` if state is sharded.

#include <string>

#include "ir/dag/dag.h"

namespace piper::pictures {

/// Empty if no state is sharded.
std::string sharded_state_text(const dag::Dag& dag);
std::string sharded_traffic_text(const dag::Dag& dag);

}  // namespace piper::pictures
