#pragma once
// The `piper` command as a library: words in, exit code out.

#include <span>
#include <string>

#include "frontend/tools/console.h"

namespace piper::tools {

/// Runs one command line (without the program's name). Never throws; gives one of ExitCode.
int run(std::span<const std::string> words, Console& console);

}  // namespace piper::tools
