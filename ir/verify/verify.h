#pragma once
// Checks a training DAG at the level it declares; each level includes those below it
// (docs/execution.md sections 2 to 6).
//
// Guarantees: shares no code with the passes that make DAGs; reads only the DAG; accepts any DAG as
// input, however broken; time and memory are near-linear; a DAG that passes at level planned has no
// deadlock under any timing and no data race, and computes every value, gradient, update and report
// of the step exactly once.
//
//   built, split    acyclic; one producer per value; types; every (chunk, instance) has F and B or BI and BW; every parameter one update
//                   per owner, every loss one report
//   placed          devices on every node
//   communicating   no edge crosses devices; halves name each other; gradients and norms are reduced exactly once over exactly their copies
//   ordered         streams; one global order that agrees with the edges and has no deadlock for devices that run one communication at a time
//   planned         per role: all actions; progress; windows; data races, values and accumulation over two steps, from offsets alone

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::verify {

/// True if nothing was reported. Stops after a few dozen diagnostics.
bool verify(const dag::Dag& dag, DiagnosticSink& sink);

/// Every action of a plan has exactly the workspace that its node needs; for a DAG that `verify`
/// accepts. The workspace of a body follows from its graph, so bodies with a signature only are
/// skipped. True if nothing was reported.
bool verify_workspaces(const dag::Dag& dag, const dag::WorkspaceBytes& needed,
                       DiagnosticSink& sink);

/// Warns of events that other events imply; for a DAG that `verify` accepts. True if there are
/// none.
bool lint(const dag::Dag& dag, DiagnosticSink& sink);

}  // namespace piper::verify
