#pragma once
// The functions of the table's rows. Each prints its answer; false if it failed.

#include "frontend/repl/words.h"

namespace piper::repl {

class Session;

bool load(Session& session, const Words& words);
bool reload(Session& session, const Words& words);
bool model(Session& session, const Words& words);
bool grid(Session& session, const Words& words);
bool orders(Session& session, const Words& words);
bool timeline(Session& session, const Words& words);
bool simulate(Session& session, const Words& words);
bool memory(Session& session, const Words& words);
bool comm(Session& session, const Words& words);
bool compare(Session& session, const Words& words);
bool step(Session& session, const Words& words);
bool why(Session& session, const Words& words);
bool what_if(Session& session, const Words& words);
bool html(Session& session, const Words& words);
bool train(Session& session, const Words& words);
bool edit(Session& session, const Words& words);
bool check(Session& session, const Words& words);
bool cost(Session& session, const Words& words);
bool rates(Session& session, const Words& words);
bool machine(Session& session, const Words& words);
bool set(Session& session, const Words& words);
bool unset(Session& session, const Words& words);
bool explain(Session& session, const Words& words);
bool save(Session& session, const Words& words);
bool help(Session& session, const Words& words);
bool quit(Session& session, const Words& words);

}  // namespace piper::repl
