#pragma once
// The processes of a run on several GPUs, as `train --device cuda` finds them in the environment:
// the rank of this one, and their group.

#include <memory>
#include <optional>

#include "frontend/tools/session.h"
#include "runtime/options.h"
#include "runtime/processes/process_group.h"

namespace piper::tools {

struct RunProcesses {
  bool failed = false;                                // after a diagnostic
  std::unique_ptr<runtime::ProcessGroup> group = {};  // null: this process has all ranks
};

/// Connects to the others, if the environment has any; refuses an environment that does not fit the
/// program.
RunProcesses join_processes(Session& session, const Session::Subject& subject,
                            const runtime::Options& options);

/// Warns if the environment has several processes, which without `--device cuda` run independently.
void report_lone_processes(Session& session);

}  // namespace piper::tools
