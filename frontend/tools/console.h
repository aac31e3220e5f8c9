#pragma once
// The environment of the driver. Passed in, so that tests run the same object in process.

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
  // `err` is a terminal this wide right now: progress may rewrite its line; none or 0: it is none.
  std::function<unsigned()> columns = {};
  // The same of `out`: pictures are folded to it, and coloured.
  std::function<unsigned()> out_columns = {};
  std::istream* in = nullptr;  // null: there is no input
  /// The form of the input: lines of a stream, of a terminal without raw mode, or keys.
  enum class Typed { stream, lines, keys } typed = Typed::stream;
  // The machine of `train --device cuda`; null: the GPU of this machine.
  CudaMachine* cuda = nullptr;
  std::string program = {};  // of this process, to start it as a child; empty: no children
};

/// Exit codes of every command.
enum ExitCode : int { kClean = 0, kDiagnostics = 1, kUsage = 2, kInterrupted = 130 };

}  // namespace piper::tools
