// The `piper` program: connects the driver to the process.

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "frontend/tools/driver.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write, not the end of the process
  const piper::source::RealFileSystem disk;
  piper::tools::Console console{std::cout, std::cerr, disk, {}, isatty(STDERR_FILENO) != 0};
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
