#pragma once
// Commands that a build runs beside itself.
//
// Guarantees: a command and what it starts are a process group of their own, which ends with this process however that ends: a guard in the group waits
// for it. A command reads nothing; of what it says so much is kept in memory as a reader needs, and one that does not come to an end of it is ended.
//
//   const Command compiler = start({"g++", "--version"});
//   const CommandEnd end = finish(compiler, stop);

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace piper::backend {

/// A command on its way: `error` says why it could not be started.
struct Command {
  pid_t guard = 0;  // the leader of the group
  pid_t pid = 0;
  int error = 0;
  int life = -1;   // the guard waits until nobody holds this end open
  int words = -1;  // what it says can be read there
};

Command start(const std::vector<std::string>& command);

/// How a command ended, and what it said.
struct CommandEnd {
  int status = 0;  // exit status, when no signal ended it
  int signal = 0;
  bool endless = false;    // it was ended because it had said kMostWords
  std::string words = {};  // without the middle, where they are many
  bool good() const { return status == 0 && signal == 0 && !endless; }
};

/// So much of what a command says is kept, from its beginning and its end each; and so much it may say at all.
inline constexpr std::size_t kKeptWords = 64 << 10, kMostWords = 64 << 20;

/// Waits for the end of a command, which comes soon once `stop` can be read: then it is asked to end, and made to if it does not. -1: nobody stops it.
/// `said` gets what the command says, as it comes.
CommandEnd finish(const Command& command, int stop, const std::function<void(std::string_view)>& said = {});

/// Whether the file can be read.
bool can_be_read(int file);

}  // namespace piper::backend
