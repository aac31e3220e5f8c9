#pragma once
// State and traffic of buckets beside the formulas of ZeRO: what stands below the tables of `show memory` and `show comm` where something is cut.

#include <string>

#include "ir/dag/dag.h"

namespace piper::pictures {

/// Empty where nothing is cut.
std::string state_shares_text(const dag::Dag& dag);
std::string traffic_shares_text(const dag::Dag& dag);

}  // namespace piper::pictures
