#include "tests/support/process.h"

#include <gtest/gtest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace piper::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) == 0) {
      read = ends[0];
      write = ends[1];
    }
  }
  ~Pipe() {
    close_end(read);
    close_end(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

[[noreturn]] void become(const std::vector<std::string>& command, const ProcessOptions& options,
                         int out, int err) {
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  if (!options.working_directory.empty() && chdir(options.working_directory.c_str()) != 0)
    _exit(127);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

// Appends the available bytes; false when the other end is closed.
bool read_some(int end, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t count = read(end, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options) {
  ProcessResult result;
  Pipe out;
  Pipe err;
  const pid_t child = fork();
  if (child < 0) {
    ADD_FAILURE() << "cannot start " << command.at(0);
    return result;
  }
  if (child == 0) become(command, options, out.write, err.write);
  setpgid(child, child);  // also done by the child: whichever is first
  Pipe::close_end(out.write);
  Pipe::close_end(err.write);

  const Clock::time_point deadline = Clock::now() + options.limit;
  int status = 0;
  bool ended = false;
  // A grandchild may keep the pipes open after the child: the child's end counts.
  while (!ended) {
    std::array<pollfd, 2> ends{{{out.read, POLLIN, 0}, {err.read, POLLIN, 0}}};
    poll(ends.data(), ends.size(), 10);
    if (ends[0].revents != 0 && !read_some(out.read, result.out)) Pipe::close_end(out.read);
    if (ends[1].revents != 0 && !read_some(err.read, result.err)) Pipe::close_end(err.read);
    ended = waitpid(child, &status, WNOHANG) == child;
    if (!ended && Clock::now() >= deadline) {
      result.timed_out = true;
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      ended = true;
    }
  }
  kill(-child, SIGKILL);  // ends its children
  for (Pipe* pipe : {&out, &err}) {
    if (pipe->read < 0) continue;
    fcntl(pipe->read, F_SETFL, O_NONBLOCK);
    while (read_some(pipe->read, pipe == &out ? result.out : result.err)) {}
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string program_path(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

}  // namespace piper::test
