#pragma once
// Commands that a build runs beside itself.
//
// Guarantees: a command and its children are a process group, which ends with this process however
// that ends, because a guard in the group waits for it. A command has no input; only the begin and
// end of its output are kept, and a command with endless output is ended.
//
//   const Command compiler = start({"g++", "--version"});
//   const CommandEnd end = finish(compiler, stop);

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace piper::backend {

/// A running command; `error` is the reason if it could not be started.
struct Command {
  pid_t guard = 0;  // the leader of the group
  pid_t pid = 0;
  int error = 0;
  int life = -1;   // the guard waits until this end is closed everywhere
  int words = -1;  // its output
};

Command start(const std::vector<std::string>& command);

/// The end of a command, and its output.
struct CommandEnd {
  int status = 0;  // exit status if no signal ended it
  int signal = 0;
  bool endless = false;    // it was ended after kMaxWords of output
  std::string words = {};  // output, without the middle if it is long
  bool good() const { return status == 0 && signal == 0 && !endless; }
};

/// Bytes kept of a command's output, at its begin and end each, and the maximum of its output.
inline constexpr std::size_t kKeptWords = 64 << 10, kMaxWords = 64 << 20;

/// Waits for the end of a command. Once `stop` is readable, the command is asked to end, and killed
/// if it does not (-1: never). `said` receives the output as it arrives.
CommandEnd finish(const Command& command, int stop,
                  const std::function<void(std::string_view)>& said = {});

/// Whether the file is readable without waiting.
bool can_be_read(int file);

}  // namespace piper::backend
