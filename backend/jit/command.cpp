#include "backend/jit/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <utility>

extern char** environ;

namespace piper::backend {

namespace {

constexpr int kMillisecondsToEnd = 2000;

/// The guard ends its group when the other end of its input is closed, with time to remove files
/// first. It ignores the signals that ask the group to end.
constexpr const char* kGuard =
    "trap '' HUP INT QUIT TERM PIPE; read nothing; kill -TERM 0; sleep 1; kill -KILL 0";

/// Redirections of the input and output of a new command.
class Files {
 public:
  Files() { posix_spawn_file_actions_init(&actions_); }
  ~Files() { posix_spawn_file_actions_destroy(&actions_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  void use(int file, int as) { posix_spawn_file_actions_adddup2(&actions_, file, as); }
  void use_nothing(int as) {
    posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_RDWR, 0);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// Starts words[0] in a process group (0: a new one); returns the error.
int spawn(const std::vector<std::string>& words, char** environment, const Files& files,
          pid_t group, pid_t& pid) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, group);
  const int error =
      posix_spawnp(&pid, arguments[0], files.get(), &attributes, arguments.data(), environment);
  posix_spawnattr_destroy(&attributes);
  return error;
}

void wait_for(pid_t process, int& status) {
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
}

void end_guard(const Command& command) {
  int status = 0;
  if (command.guard > 0) {
    kill(command.guard, SIGKILL);
    wait_for(command.guard, status);
  }
  if (command.life >= 0) close(command.life);
}

/// The beginning and the end of a text that may be long.
class Words {
 public:
  explicit Words(const std::function<void(std::string_view)>& listener) : listener_(listener) {}

  void add(const char* text, std::size_t size) {
    if (listener_) listener_({text, size});
    said_ += size;
    const std::size_t to_head = std::min(size, kKeptWords - head_.size());
    head_.append(text, to_head);
    tail_.insert(tail_.end(), text + to_head, text + size);
    if (tail_.size() > kKeptWords) tail_.erase(tail_.begin(), tail_.end() - kKeptWords);
  }
  std::size_t said() const { return said_; }
  std::string text() const {
    const std::size_t left_out = said_ - head_.size() - tail_.size();
    return head_ +
           (left_out > 0 ? "\n[" + std::to_string(left_out) + " bytes are left out here]\n" : "") +
           std::string(tail_.begin(), tail_.end());
  }

 private:
  const std::function<void(std::string_view)>& listener_;
  std::string head_;
  std::deque<char> tail_;
  std::size_t said_ = 0;
};

/// Reads the available output; false at the end.
bool read_words(int file, Words& words) {
  char part[1 << 16];
  const ssize_t got = read(file, part, sizeof part);
  if (got > 0) words.add(part, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

/// Whether the process has ended.
bool has_ended(pid_t process) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == process;
}

/// Asks the group to end, and kills it after a timeout.
class Ending {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Ending(pid_t group) : group_(group) {}
  bool asked() const { return asked_; }
  void ask() {
    if (std::exchange(asked_, true)) return;
    late_ = Clock::now() + std::chrono::milliseconds(kMillisecondsToEnd);
    kill(-group_, SIGTERM);
  }
  void make_if_late() {
    if (Clock::now() < late_) return;
    late_ = Clock::time_point::max();
    kill(-group_, SIGKILL);
  }

 private:
  pid_t group_;
  bool asked_ = false;
  Clock::time_point late_ = Clock::time_point::max();
};

}  // namespace

Command start(const std::vector<std::string>& words) {
  Command command;
  int life[2], said[2];
  if (pipe2(life, O_CLOEXEC) != 0) {
    command.error = errno;
    return command;
  }
  command.life = life[1];
  if (pipe2(said, O_CLOEXEC) != 0) {
    command.error = errno;
    close(life[0]);
    return command;
  }
  command.words = said[0];
  fcntl(command.words, F_SETFL, O_NONBLOCK);
  // The guard is started before the command.
  Files of_guard, of_command;
  of_guard.use(life[0], 0);
  of_guard.use_nothing(1);
  of_guard.use_nothing(2);
  char* no_environment[] = {nullptr};
  command.error = spawn({"/bin/sh", "-c", kGuard}, no_environment, of_guard, 0, command.guard);
  of_command.use_nothing(0);
  of_command.use(said[1], 1);
  of_command.use(said[1], 2);
  if (command.error == 0)
    command.error = spawn(words, environ, of_command, command.guard, command.pid);
  close(life[0]);
  close(said[1]);
  return command;
}

CommandEnd finish(const Command& command, int stop,
                  const std::function<void(std::string_view)>& said) {
  CommandEnd end{.status = -1};
  if (command.error == 0) {
    // An old kernel has no such file, so this polls.
    const int process = static_cast<int>(syscall(SYS_pidfd_open, command.pid, 0));
    pollfd files[] = {{process, POLLIN, 0}, {command.words, POLLIN, 0}, {stop, POLLIN, 0}};
    Words words(said);
    Ending ending(command.guard);
    while (!has_ended(command.pid)) {
      poll(files, 3, process >= 0 && !ending.asked() ? -1 : 50);
      if (files[1].revents != 0 && !read_words(command.words, words)) files[1].fd = -1;
      end.endless = end.endless || words.said() > kMaxWords;
      if (files[2].revents != 0 || end.endless) ending.ask();
      if (ending.asked()) files[2].fd = -1;
      ending.make_if_late();
    }
    if (process >= 0) close(process);
    // Processes that it has started may keep its output open and write to it.
    while (words.said() <= kMaxWords && can_be_read(command.words) &&
           read_words(command.words, words)) {}
    int status = 0;
    wait_for(command.pid, status);
    if (ending.asked()) kill(-command.guard, SIGKILL);
    end.status = WIFSIGNALED(status) ? 0 : WEXITSTATUS(status);
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end.words = words.text();
  }
  end_guard(command);
  if (command.words >= 0) close(command.words);
  return end;
}

bool can_be_read(int file) {
  pollfd ready{file, POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

}  // namespace piper::backend
