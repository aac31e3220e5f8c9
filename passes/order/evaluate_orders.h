#pragma once
// Evaluates orders: tables of steps with `trim`s become plain steps, before work is split.
//
//   order pipeline(p).trim(mb: m)   ->   rank -> steps, of microbatches below m

#include "ir/directive/directive.h"

namespace piper::passes {

/// Applies `trim`s along dimensions of a `split`; others stay, for `check_lines` to report.
void evaluate_orders(directive::Strategy& strategy);

}  // namespace piper::passes
