#pragma once
// The processes of a run on several GPUs, as `train --device cuda` finds them in the environment: which of them this is, and the group that they form.

#include <memory>
#include <optional>

#include "frontend/tools/session.h"
#include "runtime/options.h"
#include "runtime/processes/process_group.h"

namespace piper::tools {

struct RunProcesses {
  bool failed = false;                                  // after a diagnostic
  std::unique_ptr<runtime::ProcessGroup> group = {};    // null: this process has all ranks
};

/// Meets the others, where the environment speaks of any; refuses what does not fit the program.
RunProcesses meet_processes(Session& session, const Session::Subject& subject, const runtime::Options& options);

/// Warns where the environment speaks of several processes, which without `--device cuda` know nothing of each other.
void report_lone_processes(Session& session);

}  // namespace piper::tools
