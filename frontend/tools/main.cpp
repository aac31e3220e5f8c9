// The `piper` program: connects the driver to the process.

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "frontend/tools/driver.h"

namespace {

std::atomic<bool> interrupted{false};

/// The first Ctrl-C asks the run to end at a step boundary, the second one ends the process.
void on_interrupt(int signal) {
  if (interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);
  const piper::source::RealFileSystem disk;
  piper::tools::Console console{std::cout, std::cerr, disk, {}, isatty(STDERR_FILENO) != 0, &interrupted};
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (const std::size_t equals = text.find('='); equals != std::string::npos) console.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const int code = piper::tools::run(std::vector<std::string>(argv + 1, argv + argc), console);
  std::cout.flush();
  std::cerr.flush();
  // A loaded LibTorch needs 70 ms for destructors that nothing waits for.
  _exit(code);
}
