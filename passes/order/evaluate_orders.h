#pragma once
// Orders as explicit values: what a program says of them, tables of steps of which something is trimmed, becomes steps alone, before work is split.
//
//   order pipeline(p).trim(mb: m)   ->   rank -> steps, of microbatches below m

#include "ir/directive/directive.h"

namespace piper::passes {

/// Applies what is trimmed along dimensions of a `split`; the others stay, for `check_lines` to report.
void evaluate_orders(directive::Strategy& strategy);

}  // namespace piper::passes
