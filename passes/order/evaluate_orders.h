#pragma once
// Orders as explicit values: what a program says of them, tables of steps with transforms above, becomes steps alone, before work is split.
//
//   order pipeline(p).trim(mb: m)   ->   rank -> steps, of microbatches below m

#include <optional>

#include "ir/directive/directive.h"

namespace piper::passes {

/// The strategy with transforms applied; nothing where it has none. Those that cannot be applied stay, for `check_transforms` to report: of dimensions into which
/// nothing is split, and those that are not available.
std::optional<directive::Strategy> evaluate_orders(const directive::Strategy& strategy);

}  // namespace piper::passes
