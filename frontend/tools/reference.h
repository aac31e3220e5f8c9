#pragma once
// `train --reference`: the program against the one-device step (EXECUTION.md section 6).

#include "frontend/tools/session.h"
#include "runtime/options.h"

namespace piper::tools {

/// Three steps in f64 against the unsplit one-device step of the same model, each loss, gradient and parameter within kReferenceBound of it relative to
/// the larger of its norm and 1; then three steps in the train's own type against the one-device run with the same microbatches and order of additions,
/// bit-equal. Prints the largest differences; gives the exit code, 1 beyond a bound. Ctrl-C ends it between two steps or before them, as it ends a run.
int compare_with_one_device(Session& session, Session::Subject& subject, const runtime::Options& options);

inline constexpr double kReferenceBound = 1e-10;
inline constexpr int kReferenceSteps = 3;

}  // namespace piper::tools
