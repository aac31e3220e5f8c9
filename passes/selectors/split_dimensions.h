#pragma once
// The dimensions that `split` lines of a strategy make.
//
//   split batch into copy: 2, mb: 4   ->   copy: 2, mb: 4

#include <vector>

#include "ir/directive/directive.h"

namespace piper::passes {

/// The dimensions into which `split` lines divide the batch.
std::vector<directive::NamedExtent> dimensions(const directive::Strategy& strategy);
/// Whether a `split` of the strategy makes that dimension.
bool is_split_into(const directive::Strategy& strategy, Symbol name);

}  // namespace piper::passes
