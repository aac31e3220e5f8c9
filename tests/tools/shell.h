#pragma once
// Shell scripts that run the program in a temporary folder.
//
//   folder.write("tiny.pipe", kTiny);
//   const ProcessResult run = shell(folder, "ulimit -f 1; exec \"$0\" train tiny.pipe --interpret --out out");

#include <string>

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {

/// Runs a shell command: $0 is the program.
ProcessResult shell(const TemporaryFolder& folder, const std::string& script);

/// A train of three short steps.
inline constexpr const char* kTiny =
    "use std.models.mlp\n"
    "mesh pair(pp: 2)\n"
    "train tiny = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on pair {\n"
    "    data:  synthetic(batch: 8, classes: 3)\n"
    "    optim: sgd(lr: 0.1)\n"
    "    steps: 3\n"
    "    replicate model over pp\n"
    "}\n";

}  // namespace piper::test
