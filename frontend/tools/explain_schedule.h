#pragma once
// `explain` of a schedule of the standard library: what its file says of it, its figures and its grid at the sizes given, and the others beside it.

#include <string>

#include "frontend/tools/arguments.h"
#include "frontend/tools/console.h"

namespace piper::tools {

/// `name` is one of `Compilation::library_schedules`.
int explain_schedule(Console& console, const Arguments& arguments, const std::string& name);

}  // namespace piper::tools
