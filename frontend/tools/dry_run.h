#pragma once
// `train --dry-run`: which rank of a run gets what, without starting anything.
//
//   return print_dry_run(session, subject, launch);

#include <optional>

#include "frontend/tools/session.h"
#include "runtime/processes/launch.h"

namespace piper::tools {

/// Compiles the train and prints a row per rank: its process, place in the mesh, memory, bytes that
/// it sends in a step, and peers. `launch`: a launcher's; of its processes the first one prints.
/// Returns the exit code.
int print_dry_run(Session& session, Session::Subject& subject,
                  const std::optional<runtime::Launch>& launch);

}  // namespace piper::tools
