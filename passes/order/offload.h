#pragma once
// Offloading: saved values of some work are kept in the memory of the host until their backward.
//
//   offload stage with window: 1   ->   F.mb0, offload.F.mb0, F.mb1, B.mb1, fetch.B.mb0, B.mb0        (of stage 1)
//
// Each device keeps the saved values of `window` instances of the line's regions, including the
// running one. The instance that leaves is the one that is read last (Belady 1966, with the fewest
// copies). If the window is 2 or more and not all instances fit, one place is for fetches, which
// run during the work before the reader. The window is a bound in the order of the plan, and the
// planned arena has no room for more.
//
// `what: optimizer` keeps the optimizer state of buckets there: it is fetched before an update and
// offloaded after it, for `window` buckets at a time.

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// Adds `offload` and `fetch` nodes on a stream `copy` to an ordered training program. False after
/// reporting a line without saved values, or two lines for the same values.
bool offload(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
