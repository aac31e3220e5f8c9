#pragma once
// Orders: what is wrong with their lines, whatever the work is that they name.
//
//   order { rank r in pp[0] { … } }; order { rank r in pp { … } }   ->   P3103 for `pp[0]`

#include "ir/context.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// Reports what is trimmed along a dimension that no `split` makes, which `evaluate_orders` leaves; false where anything is.
bool check_trims(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink);
/// Reports communication that does not exist, and devices with several orders; not the latter where cuts are not `single`, as of a schedule that is applied twice.
void check_orders(const directive::Strategy& strategy, const Context& context, bool single, DiagnosticSink& sink);

}  // namespace piper::passes
