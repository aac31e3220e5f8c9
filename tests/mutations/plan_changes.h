#pragma once
// Changes of a printed `.pir` text that make its parts disagree: with its nodes, bodies or buffers.
// In plans of random programs they are refused as in the legal texts.
//
// Values are laid into the padding of buckets, state after activations; terms of a sum are produced
// in another order; nodes get attributes that their kind does not have; members of one
// communication get different streams; a recomputed forward computes or outputs something else than
// the whole one.

#include <string>
#include <vector>

#include "ir/dag/plan.h"
#include "tests/mutations/text_changes.h"

namespace piper::test {

/// `text` as `print` writes `dag`: a statement, node or action per line.
std::vector<TextChange> plan_changes(const dag::Dag& dag, const std::string& text);

}  // namespace piper::test
