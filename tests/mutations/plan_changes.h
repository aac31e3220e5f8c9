#pragma once
// Changes of a printed `.pir` text that say something else than its nodes, bodies and buffers do; of plans of random programs they are refused like those of the legal texts.
//
// Values are laid into the padding of buckets, state behind activations; terms of a sum are made in another order; nodes get attributes that their kind does not have; members of one
// communication stand on different streams; a lean forward computes or gives something else than the whole one.

#include <string>
#include <vector>

#include "ir/dag/plan.h"
#include "tests/mutations/text_changes.h"

namespace piper::test {

/// `text` as `print` writes `dag`: a statement, node or action per line.
std::vector<TextChange> plan_changes(const dag::Dag& dag, const std::string& text);

}  // namespace piper::test
