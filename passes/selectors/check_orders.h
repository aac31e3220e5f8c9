#pragma once
// Checks the lines of orders, independent of their work.
//
//   order { rank r in pp[0] { … } }; order { rank r in pp { … } }   ->   P3103 for `pp[0]`

#include "ir/context.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// Reports `trim`s along a dimension without a `split`, which `evaluate_orders` leaves; false if
/// there are any.
bool check_trims(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink);
/// Reports communication that does not exist, and devices with several orders; the latter only if
/// cuts are `single`, unlike those of a schedule that is applied twice.
void check_orders(const directive::Strategy& strategy, const Context& context, bool single,
                  DiagnosticSink& sink);

}  // namespace piper::passes
