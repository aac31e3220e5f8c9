#pragma once
// Commands that a build runs beside itself.
//
// Guarantees: a command is the leader of a process group, so what it starts ends with it; it reads nothing, and what it says is kept in memory: what
// is said about a full disk needs no room on it.
//
//   const Command compiler = start({"g++", "--version"});
//   const CommandEnd end = finish(compiler, stop);

#include <sys/types.h>

#include <string>
#include <vector>

namespace piper::backend {

/// A command on its way: `error` says why it could not be started.
struct Command {
  pid_t pid = 0;
  int error = 0;
  int words = -1;  // the file that they go to
};

Command start(const std::vector<std::string>& command);

/// How a command ended, and what it said.
struct CommandEnd {
  int status = 0;  // exit status, when no signal ended it
  int signal = 0;
  std::string words = {};
  bool good() const { return status == 0 && signal == 0; }
};

/// Waits for the end of a command, which comes soon once `stop` can be read: then it is asked to end, and made to if it does not. -1: nobody stops it.
CommandEnd finish(const Command& command, int stop);

/// Whether the file can be read.
bool can_be_read(int file);

}  // namespace piper::backend
