#pragma once
// What the driver needs from its surroundings. Passed in, so that tests run the same object in process.

#include <functional>
#include <istream>
#include <map>
#include <ostream>
#include <string>

#include "frontend/source/source_manager.h"

namespace piper::tools {

class CudaMachine;

struct Console {
  std::ostream& out;
  std::ostream& err;
  const source::FileSystem& files;
  std::map<std::string, std::string> environment;
  std::function<unsigned()> columns = {};  // `err` is a terminal this wide right now: progress may rewrite its line; none or 0: it is none
  std::function<unsigned()> out_columns = {};  // the same of `out`: pictures are folded to it, and coloured
  std::istream* in = nullptr;  // null: there is no input
  /// What somebody types: lines of a stream, of a terminal that knows nothing else, or keys.
  enum class Typed { stream, lines, keys } typed = Typed::stream;
  CudaMachine* cuda = nullptr;  // what `train --device cuda` runs on; null: the GPU of this machine
  std::string program = {};  // of this process, to run it again; empty: that is not done
};

/// Exit codes of every command.
enum ExitCode : int { kClean = 0, kDiagnostics = 1, kUsage = 2, kInterrupted = 130 };

}  // namespace piper::tools
