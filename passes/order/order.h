#pragma once
// From level communicating to ordered: applies orders, schedules work without an order, assigns
// streams, and puts all nodes into one global linear order.
//
// Guarantees: `dag.order` is a topological order of data flow, of every rank's compute order, of
// message numbers and of windows, with the members of a communication side by side; a strategy
// without orders gets a legal one; equal input gives an equal result.

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "ir/directive/directive.h"

namespace piper::passes {

/// False, with at least one error in `sink`, if the orders or streams of the strategy do not fit
/// the DAG.
bool order(dag::Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink);

}  // namespace piper::passes
