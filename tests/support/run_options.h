#pragma once
// Options with which tests run programs: the runtime's own loops, arenas poisoned and guarded at
// their ends, and a short limit for a rank that hangs.

#include "runtime/options.h"

namespace piper::test {

inline runtime::Options checked_run(double stall_seconds = 60) {
  runtime::Options options;
  options.math = runtime::Math::builtin;
  options.huge_pages = false;
  options.check_memory = true;
  options.stall_seconds = stall_seconds;
  return options;
}

}  // namespace piper::test
