#include "backend/jit/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

extern char** environ;

namespace piper::backend {

namespace {

constexpr int kMillisecondsToEnd = 2000;

std::string take_words(int file) {
  std::string text;
  char part[4096];
  for (ssize_t got; (got = pread(file, part, sizeof part, static_cast<off_t>(text.size()))) > 0;) text.append(part, static_cast<std::size_t>(got));
  close(file);
  return text;
}

/// Waits until the process has ended or `stop` can be read; whether it has ended.
bool ends(int process, int stop, int milliseconds) {
  pollfd files[] = {{process, POLLIN, 0}, {stop, POLLIN, 0}};
  int ready = 0;
  do ready = poll(files, 2, milliseconds);
  while (ready < 0 && errno == EINTR);
  return ready != 0 && (ready < 0 || files[0].revents != 0);
}

}  // namespace

Command start(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Command command;
  command.words = memfd_create("words", MFD_CLOEXEC);
  if (command.words < 0) {
    command.error = errno;
    return command;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, command.words, 1);
  posix_spawn_file_actions_adddup2(&actions, command.words, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  command.error = posix_spawnp(&command.pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return command;
}

CommandEnd finish(const Command& command, int stop) {
  int status = 0;
  bool ended = command.error == 0;
  // An old kernel has no such file: there a command is waited for.
  if (const int process = ended && stop >= 0 ? static_cast<int>(syscall(SYS_pidfd_open, command.pid, 0)) : -1; process >= 0) {
    if (!ends(process, stop, -1)) {
      kill(-command.pid, SIGTERM);
      if (!ends(process, -1, kMillisecondsToEnd)) kill(-command.pid, SIGKILL);
    }
    close(process);
  }
  while (ended && waitpid(command.pid, &status, 0) < 0) ended = errno == EINTR;
  std::string words = command.words < 0 ? std::string() : take_words(command.words);
  if (!ended) return {.status = -1, .words = std::move(words)};
  return WIFSIGNALED(status) ? CommandEnd{.signal = WTERMSIG(status), .words = std::move(words)} : CommandEnd{.status = WEXITSTATUS(status), .words = std::move(words)};
}

bool can_be_read(int file) {
  pollfd ready{file, POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

}  // namespace piper::backend
