#pragma once
// The command `show checkpoint DIR`: where training stood, and the tensors that were kept.
//
//   return show_checkpoint(session, "run:300");

#include <string>

#include "frontend/tools/session.h"

namespace piper::tools {

/// Prints a checkpoint. `text` is that of `--resume`: of a run it names the latest one, or that of a
/// step, and the other checkpoints of the run are listed, too. Returns the exit code.
int show_checkpoint(Session& session, const std::string& text);

}  // namespace piper::tools
