#pragma once
// The commands. Each takes the parsed arguments and gives the exit code; output and diagnostics go
// to the console.

#include "frontend/tools/arguments.h"
#include "frontend/tools/console.h"

namespace piper::tools {

int run_check(Console& console, const Arguments& arguments);
int run_show(Console& console, const Arguments& arguments);
int run_simulate(Console& console, const Arguments& arguments);
int run_compare(Console& console, const Arguments& arguments);
int run_tune(Console& console, const Arguments& arguments);
int run_train(Console& console, const Arguments& arguments);
int run_build(Console& console, const Arguments& arguments);
int run_sample(Console& console, const Arguments& arguments);
int run_export(Console& console, const Arguments& arguments);
int run_explain(Console& console, const Arguments& arguments);
int run_completion(Console& console, const Arguments& arguments);
int run_fmt(Console& console, const Arguments& arguments);
int run_repl(Console& console, const Arguments& arguments);
int run_doctor(Console& console, const Arguments& arguments);
int run_lsp(Console& console, const Arguments& arguments);

}  // namespace piper::tools
