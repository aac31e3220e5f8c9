#pragma once
// The command `show stuck FILE [NAME] --from DIR`: where the ranks of a run stood when it ended, from
// the flight records in its folder, and which action held up the others.
//
//   return show_stuck(session, subject);

#include "frontend/tools/session.h"

namespace piper::tools {

/// Compiles the train as `train` does, because the records have the numbers of actions alone.
/// Refuses a folder without a record of that program (P6029). Returns the exit code.
int show_stuck(Session& session, const Session::Subject& subject);

}  // namespace piper::tools
