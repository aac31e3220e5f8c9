#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <sstream>

#include "frontend/repl/repl.h"
#include "frontend/repl/tty.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/environment.h"
#include "frontend/tools/session.h"

namespace piper::tools {
namespace {

/// The interrupt of the running session, for the handler.
repl::Interrupt* running = nullptr;

/// Ctrl-C ends a request, and not the program.
class InterruptsRequests {
 public:
  explicit InterruptsRequests(repl::Interrupt& interrupt) {
    running = &interrupt;
    struct sigaction action = {};
    action.sa_handler = [](int) { running->raise(); };
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &before_);
  }
  InterruptsRequests(const InterruptsRequests&) = delete;
  InterruptsRequests& operator=(const InterruptsRequests&) = delete;
  ~InterruptsRequests() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ = {};
};

/// Runs a program on the streams of this one, and gives its exit code.
int run_child(const std::string& program, const std::vector<std::string>& words,
              const std::map<std::string, std::string>& environment) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> line, setting;
  for (const std::string& word : words) line.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& variable : variables)
    setting.push_back(const_cast<char*>(variable.c_str()));
  line.push_back(nullptr);
  setting.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, line.data(), setting.data()) != 0)
    return kUsage;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kUsage;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

repl::Host host_of(Console& console, const source::FileSystem& files, Session& screen_of) {
  repl::Host host{.out = console.out, .files = files};
  host.screen = [&] { return screen_of.screen(); };
  if (console.program.empty()) return host;
  host.run_program = [&](const std::vector<std::string>& words) {
    std::vector<std::string> line = {"piper"};
    line.insert(line.end(), words.begin(), words.end());
    console.out.flush();
    return run_child(console.program, line, console.environment);
  };
  host.run_editor = [&](const std::string& path) {
    const auto named = console.environment.find("EDITOR");
    const std::string editor =
        named != console.environment.end() && !named->second.empty() ? named->second : "vi";
    console.out.flush();
    return run_child("/bin/sh", {"sh", "-c", editor + " \"$0\"", path}, console.environment);
  };
  return host;
}

ExitCode exit_code(repl::Ended ended) {
  return ended == repl::Ended::well     ? kClean
         : ended == repl::Ended::failed ? kDiagnostics
                                        : kInterrupted;
}

}  // namespace

int run_repl(Console& console, const Arguments& arguments) {
  Session screen_of(console, arguments);
  const source::UnblockingFileSystem files(console.files);  // a session waits for no pipe
  repl::Host host = host_of(console, files, screen_of);
  repl::Interrupt interrupt;
  repl::Session session(host, interrupt);
  const InterruptsRequests interrupts(interrupt);
  const bool loaded = arguments.positional.empty() ||
                      session.execute(":load \"" + arguments.positional.front() + "\"");
  if (!arguments.script.empty()) {
    const source::ReadResult script = files.read(arguments.script, source::kMaxFileSize);
    if (!script.text) {
      session.fail(Code::unreadable_file, "", "`{}` cannot be read: {}", arguments.script,
                   script.too_large > 0 ? "it is too large" : script.error);
      return kDiagnostics;
    }
    std::istringstream lines(*script.text);
    const ExitCode code = exit_code(repl::run_lines(session, lines, repl::Echo::line));
    return code == kClean && !loaded ? kDiagnostics : code;
  }
  if (console.typed == Console::Typed::keys) {
    repl::Tty terminal(STDIN_FILENO, STDOUT_FILENO);
    session.say("piper repl: `:help` lists what can be typed, Ctrl-D ends\n");
    repl::run_terminal(session, terminal, repl::HistoryFile(history_path(console.environment)));
    return kClean;
  }
  if (console.in == nullptr) return kClean;
  const bool typed = console.typed == Console::Typed::lines;
  const ExitCode code = exit_code(
      repl::run_lines(session, *console.in, typed ? repl::Echo::prompt : repl::Echo::nothing));
  return typed ? kClean : code == kClean && !loaded ? kDiagnostics : code;
}

}  // namespace piper::tools
