#pragma once
// Measures of a planned DAG and the `require` lines that bound them.

#include <functional>
#include <string>

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// What a plan takes of something, and the role that takes most.
struct Most {
  std::int64_t bytes = 0;
  std::size_t role = 0;
};
Most peak_memory(const dag::Dag& dag);  // the arena of a device
Most host_memory(const dag::Dag& dag);  // the arena that a device has in the memory of the host

/// Bytes that all ranks send in one step; of a collective a ring's share.
std::int64_t traffic(const dag::Dag& dag);

/// Checks `dag.requirements`; false after reporting one that is not met, with the value found. `memory_advice`, if there is one, is asked once for the hint of a
/// memory that is exceeded.
bool check_requirements(const dag::Dag& dag, DiagnosticSink& sink, const std::function<std::string()>& memory_advice);
/// Those of a bubble alone, which `ir/verify` leaves to the simulator: for a plan that was read from text.
bool check_bubbles(const dag::Dag& dag, DiagnosticSink& sink);

}  // namespace piper::passes
