#pragma once
// Measures of a planned DAG and the `require` lines that bound them.

#include <functional>
#include <string>

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

/// The largest amount over roles, and the role that needs it.
struct Most {
  std::int64_t bytes = 0;
  std::size_t role = 0;
};
Most peak_memory(const dag::Dag& dag);  // the arena of a device
// The arena of a device in the memory of the host, with the copies of checkpoints (`staging.h`).
Most host_memory(const dag::Dag& dag);

/// Bytes that all ranks send in one step; for a collective, those of a ring.
std::int64_t traffic(const dag::Dag& dag);

/// Checks `dag.requirements`; false after reporting one that is not met, with the value found.
/// `memory_advice`, if there is one, is called once for the hint if memory is exceeded.
bool check_requirements(const dag::Dag& dag, DiagnosticSink& sink,
                        const std::function<std::string()>& memory_advice);
/// Checks only bounds on bubbles, which `ir/verify` leaves to the simulator, for a plan read from
/// text.
bool check_bubbles(const dag::Dag& dag, DiagnosticSink& sink);

}  // namespace piper::passes
