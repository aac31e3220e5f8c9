#include "frontend/tools/commands.h"
#include "frontend/tools/large_heap.h"
#include "frontend/tools/session.h"
#include "ir/verify/verify.h"

namespace piper::tools {

int run_check(Console& console, const Arguments& arguments) {
  use_large_heap();
  Session session(console, arguments);
  if (!session.open(arguments.positional[0]) || session.pir()) return session.finish();
  for (Session::Subject& subject : session.subjects(arguments.positional.size() > 1 ? arguments.positional[1] : "")) {
    const auto dag = session.compile(subject, dag::Level::planned);
    if (dag) verify::verify(*dag, session.sink());
    if (dag && subject.lowered.strategy.settings.held_out) {
      const auto held_out = session.compile(subject, dag::Level::planned, true);
      if (held_out) verify::verify(*held_out, session.sink());
    }
  }
  return session.finish();
}

}  // namespace piper::tools
