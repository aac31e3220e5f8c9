#pragma once
// Offloading: what the backwards of some work read waits in the memory of the host.
//
//   offload stage with window: 1   ->   F.mb0, offload.F.mb0, F.mb1, B.mb1, fetch.B.mb0, B.mb0        (of stage 1)
//
// Each device keeps what `window` instances of the line's regions save, the one that runs among them. Which of them leave follows from the order: an instance that has
// makes room is the one that is read last (Belady 1966, which copies least). Where the window is 2 or more and not all fit, one of its places is for what comes back: it is
// fetched while the work before its reader runs. The window is a bound in the order of the plan, and the planned arena has no room for more.
//
// `what: optimizer` keeps the optimizer state of buckets there: it is fetched before an update and brought back behind it, of `window` buckets at a time.

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// An ordered program; one that trains with `offload` and `fetch` nodes on a stream `copy`. False after reporting a line that names nothing that is saved, or the same as another.
bool offload(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
