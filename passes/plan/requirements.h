#pragma once
// Measures of a planned DAG and the `require` lines that bound them.

#include <functional>
#include <string>

#include "ir/dag/plan.h"
#include "ir/diagnostics/diagnostics.h"

namespace piper::passes {

struct Measures {
  std::int64_t peak_memory = 0;     // bytes: the largest arena
  std::size_t peak_role = 0;        // where
  double bubble = 0;                // 1 - work / (roles with work * span): F, BI, BW take 1, B takes 2, communication nothing
  std::int64_t traffic = 0;         // bytes that all ranks send in one step; a ring's share for collectives
};
Measures measure(const dag::Dag& dag);

/// Checks `dag.requirements`; false after reporting one that is not met, with the value found. `memory_advice`, if there is one, is asked once for the hint of a
/// memory that is exceeded.
bool check_requirements(const dag::Dag& dag, DiagnosticSink& sink, const std::function<std::string()>& memory_advice);

/// `7.5GiB`, `640KiB`, `12 bytes`: exact, or to one decimal.
std::string bytes_text(double bytes);

}  // namespace piper::passes
