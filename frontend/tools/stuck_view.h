#pragma once
// The command `show stuck FILE [NAME] --from DIR`: reads the flight records of a run, and prints
// the last action of each rank and the action for which the others waited.
//
//   return show_stuck(session, subject);

#include "frontend/tools/session.h"

namespace piper::tools {

/// Compiles the train as `train` does, because the records have only the numbers of actions.
/// Refuses a folder without a record of that program (P6029). Returns the exit code.
int show_stuck(Session& session, const Session::Subject& subject);

}  // namespace piper::tools
