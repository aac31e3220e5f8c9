#include "runtime/launch/child_processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <random>

#include "runtime/launch/interrupt.h"
#include "runtime/launch/merged_output.h"
#include "runtime/processes/run_token.h"

namespace piper::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook(50);

/// A port of this machine that stays this run's: bound, so that the system gives it to no other
/// program, but without a listener, so that the process of rank 0 can listen there.
class ReservedPort {
 public:
  ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 || setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(socket_, plain, size) != 0 || getsockname(socket_, plain, &size) != 0)
      return;
    port_ = ntohs(address.sin_port);
  }
  ~ReservedPort() {
    if (socket_ >= 0) close(socket_);
  }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  /// 0: there is none.
  std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

struct Child {
  pid_t pid = 0;
  std::array<int, 2> files = {-1, -1};  // what it prints: its output and its errors
  bool ended = false;
  bool stopped = false;      // by a signal such as SIGSTOP
  bool killed_here = false;  // after the death of another
  int status = 0;

  bool open() const { return files[0] >= 0 || files[1] >= 0; }
  bool good() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
  // By the signal that was passed on, before or after it listened.
  bool interrupted() const {
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGINT : WEXITSTATUS(status) == 128 + SIGINT;
  }
};

/// In a new process: the handlers of its parent are not its own. Signals that were ignored stay so,
/// except SIGPIPE, which the starter ignores while it passes on the output of its processes.
void restore_signals(const sigset_t& mask) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &action, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

std::string run_name() {
  std::random_device random;
  std::string name = "piper-";
  for (int i = 0; i < 4; ++i) name += std::to_string(random());
  return name;
}

class Children {
 public:
  explicit Children(const ChildrenOptions& options)
      : options_(options), merged_(names(options), options.err), children_(options.world) {}
  ~Children() {
    kill_if([](const Child&) { return true; });
    for (Child& child : children_) {
      if (child.pid > 0 && !child.ended) waitpid(child.pid, nullptr, 0);
      for (int& file : child.files) close_file(file);
    }
  }

  ChildrenEnd run() {
    if (!start()) return {.code = 1, .failure = cannot_start()};
    while (std::ranges::any_of(children_,
                               [](const Child& child) { return !child.ended || child.open(); })) {
      look();
      if (!first_dead_) continue;
      // A stopped process ends by itself only when it goes on.
      const bool late = Clock::now() >= end_by_;
      kill_if([&](const Child& child) { return late || child.stopped; });
    }
    return end();
  }

 private:
  static std::vector<std::string> names(const ChildrenOptions& options) {
    Launch launch{.world = options.world, .ranks = options.ranks};
    std::vector<std::string> names = {""};
    for (std::uint32_t process = 1; process < options.world; ++process)
      names.push_back(process_text(launch, process) + ": ");
    return names;
  }

  static void close_file(int& file) {
    if (file >= 0) close(file);
    file = -1;
  }

  Failure cannot_start() const {
    return {
        .code = kOutOfMemory,
        .message =
            "the processes of the run cannot be started: " + std::string(std::strerror(errno)),
        .hint =
            "start fewer, or raise the limits on processes and files (`ulimit -u`, `ulimit -n`)"};
  }

  bool start() {
    if (port_.port() == 0) return false;
    const std::string run = run_name(), token = random_run_token();
    for (std::uint32_t process = 0; process < options_.world; ++process) {
      Environment environment = options_.environment;
      environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(process);
      environment["WORLD_SIZE"] = std::to_string(options_.world);
      environment["MASTER_ADDR"] = "127.0.0.1";
      environment["MASTER_PORT"] = std::to_string(port_.port());
      environment[kRunVariable] = run;
      environment[kTokenVariable] = token;
      environment.erase(kTokenFileVariable);
      // UCX listens at all devices of the machine by itself.
      environment.try_emplace("UCX_NET_DEVICES", "lo");
      if (!start_one(environment, children_[process])) return false;
    }
    return true;
  }

  bool start_one(const Environment& environment, Child& child) {
    std::vector<std::string> entries;
    for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
    std::vector<char*> variables, words;
    for (std::string& entry : entries) variables.push_back(entry.data());
    variables.push_back(nullptr);
    std::vector<std::string> command = options_.command;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    std::array<int, 2> out = {-1, -1}, err = {-1, -1};
    if (pipe2(out.data(), O_CLOEXEC) != 0) return false;
    if (pipe2(err.data(), O_CLOEXEC) != 0) {
      for (int& file : out) close_file(file);
      return false;
    }
    const pid_t parent = getpid();
    // A signal between the two calls is not for the handlers of this process.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    child.pid = fork();
    // A group of its own: the terminal's Ctrl-C reaches it once, from here. Both set it, because
    // either may need it first.
    if (child.pid >= 0) setpgid(child.pid, child.pid);
    if (child.pid != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child.pid == 0) {
      restore_signals(before);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int none = open("/dev/null", O_RDONLY);
      if (getppid() == parent && dup2(none, STDIN_FILENO) >= 0 &&
          dup2(out[1], STDOUT_FILENO) >= 0 && dup2(err[1], STDERR_FILENO) >= 0)
        execve(words[0], words.data(), variables.data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    child.files = {out[0], err[0]};
    child.ended = child.pid < 0;
    return child.pid > 0;
  }

  /// Passes on what they print, a signal, and the news of a death.
  void look() {
    std::vector<pollfd> files;
    for (const Child& child : children_) {
      for (const int file : child.files) files.push_back({file, POLLIN, 0});
    }
    if (options_.interrupt != nullptr && !passed_on_)
      files.push_back({options_.interrupt->file(), POLLIN, 0});
    poll(files.data(), files.size(), static_cast<int>(kLook.count()));
    for (std::size_t process = 0; process < children_.size(); ++process) {
      for (std::size_t at = 0; at < 2; ++at) {
        if (files[2 * process + at].revents != 0) read_from(process, at);
      }
    }
    for (std::size_t process = 0; process < children_.size(); ++process) wait_for(process);
    if (options_.interrupt != nullptr && !passed_on_ && options_.interrupt->requested()) {
      passed_on_ = true;
      for (const Child& child : children_) {
        if (!child.ended) kill(child.pid, SIGINT);
      }
    }
  }

  void read_from(std::size_t process, std::size_t at) {
    char bytes[65536];
    int& file = children_[process].files[at];
    const ssize_t count = read(file, bytes, sizeof bytes);
    if (count > 0) {
      const std::string_view text(bytes, static_cast<std::size_t>(count));
      if (at == 0 && process == 0) {
        options_.out(text);
      } else {
        merged_.add(process, text);
      }
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      close_file(file);
      if (!children_[process].open()) merged_.end(process);
    }
  }

  void wait_for(std::size_t process) {
    Child& child = children_[process];
    int status = 0;
    if (child.ended || waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != child.pid)
      return;
    child.stopped = WIFSTOPPED(status);
    if (child.stopped || WIFCONTINUED(status)) return;
    child.status = status;
    child.ended = true;
    // Processes that it started end with it, and no longer hold its pipes.
    kill(-child.pid, SIGKILL);
    // After a signal one may still write a checkpoint when another has ended.
    if (child.good() || (passed_on_ && child.interrupted()) || first_dead_) return;
    first_dead_ = process;
    end_by_ = Clock::now() + options_.end_within;
  }

  template <typename Condition>
  void kill_if(const Condition& condition) {
    for (Child& child : children_) {
      if (child.pid <= 0 || child.ended || !condition(child)) continue;
      child.killed_here = true;
      kill(-child.pid, SIGKILL);
    }
  }

  ChildrenEnd end() const {
    if (passed_on_ && std::ranges::all_of(children_, [](const Child& child) {
          return child.good() || child.interrupted();
        }))
      return {.code = std::ranges::any_of(children_, &Child::interrupted) ? 128 + SIGINT : 0};
    // A process that was killed is the cause, whichever ended first.
    const auto killed = std::ranges::find_if(children_, [](const Child& child) {
      return WIFSIGNALED(child.status) && !child.killed_here;
    });
    if (killed == children_.end())
      return {.code = first_dead_ ? WEXITSTATUS(children_[*first_dead_].status) : 0};
    const Launch launch{.world = options_.world, .ranks = options_.ranks};
    const auto process = static_cast<std::uint32_t>(killed - children_.begin());
    const int signal = WTERMSIG(killed->status);
    const char* const name = sigabbrev_np(signal);
    return {
        .code = 1,
        .failure = Failure{
            .code = kProcessLost,
            .message = process_text(launch, process) + " (process " + std::to_string(killed->pid) +
                       ") was ended by SIG" + (name != nullptr ? name : std::to_string(signal)),
            .hint =
                signal == SIGKILL
                    ? "it was killed: by a person, or by the system for want of memory; `dmesg` says which"
                    : "it is a fault of piper or of a library; its flight record under `--out` has its last actions"}};
  }

  const ChildrenOptions& options_;
  const ReservedPort port_;
  MergedOutput merged_;
  std::vector<Child> children_;
  std::optional<std::size_t> first_dead_;
  Clock::time_point end_by_{};
  bool passed_on_ = false;
};

}  // namespace

ChildrenEnd run_children(const ChildrenOptions& options) {
  // Ended before the result is used: no process is left then.
  return Children(options).run();
}

}  // namespace piper::runtime
