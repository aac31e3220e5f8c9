// The `piper` program: connects the driver to the process.

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "frontend/tools/driver.h"

namespace {

/// A stream that was closed (`>&-`) is one that cannot be written: otherwise the next file that is
/// opened takes its number, and words end up in it.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0 &&
        open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
      _exit(piper::tools::kUsage);
  }
}

/// The width of the terminal of a stream, which may be resized at any time; 80 if the terminal does
/// not say. 0: it is not a terminal.
unsigned columns_of(int stream) {
  if (!isatty(stream)) return 0;
  winsize size{};
  return ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

constexpr std::size_t kStack = std::size_t{8} << 20;

/// The stack size depends on this program and not on the shell's `ulimit -s`: all threads get the
/// same, those of libraries too.
void set_stack_of_threads() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

/// Whether the stack of the first thread is smaller than that of others, which only whoever started
/// the process could change.
bool has_small_stack() {
  rlimit stack{};
  return getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kStack;
}

/// Compiling asks for memory in many places and on several threads. If the machine has no more, one
/// line says so and the process ends; files that are written whole or not at all (cache entries)
/// stay as they were.
[[noreturn]] void end_without_memory() {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      static std::atomic_flag reported;
      while (reported.test_and_set()) pause();  // another thread says it
      constexpr std::string_view kText =
          "error P6005: the machine has no memory left for this program\n  hint: run it on a machine with more, or make the program smaller\n";
      if (write(STDERR_FILENO, kText.data(), kText.size()) < 0) _exit(1);
      _exit(1);
    } catch (...) {}
  }
  std::abort();
}

/// The whole command: words after the program's name in, exit code out.
int run_command(const std::vector<std::string>& words) {
  const piper::source::RealFileSystem disk;
  piper::tools::Console console{std::cout,
                                std::cerr,
                                disk,
                                {},
                                [] { return columns_of(STDERR_FILENO); },
                                [] { return columns_of(STDOUT_FILENO); },
                                &std::cin};
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (const std::size_t equals = text.find('='); equals != std::string::npos)
      console.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  console.program = "/proc/self/exe";
  const bool typed = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  if (typed) console.typed = piper::tools::Console::Typed::keys;
  // A line cannot be cleared there.
  if (const auto kind = console.environment.find("TERM");
      kind == console.environment.end() || kind->second == "dumb") {
    console.columns = console.out_columns = {};
    if (typed) console.typed = piper::tools::Console::Typed::lines;
  }
  const int code = piper::tools::run(words, console);
  std::cout.flush();
  std::cerr.flush();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  // A write beyond the limit on the size of files fails like one to a full disk, and whoever writes
  // says so.
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(end_without_memory);
  set_stack_of_threads();
  const std::vector<std::string> words(argv + 1, argv + argc);
  int code = piper::tools::kUsage;
  if (has_small_stack()) {
    std::thread([&] { code = run_command(words); }).join();
  } else {
    code = run_command(words);
  }
  // A loaded LibTorch needs 70 ms for destructors that nothing waits for.
  _exit(code);
}
