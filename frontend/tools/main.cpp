// The `piper` program: connects the driver to the process.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "frontend/tools/driver.h"

namespace {

/// A stream that was closed (`>&-`) is one that cannot be written: otherwise the next file that is opened takes its number, and words end up in it.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) _exit(piper::tools::kUsage);
  }
}

/// Of the terminal that shows `stderr`, which may be resized at any time; a terminal that does not say has 80. 0: it is no terminal.
unsigned columns_of_stderr() {
  if (!isatty(STDERR_FILENO)) return 0;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  const piper::source::RealFileSystem disk;
  piper::tools::Console console{std::cout, std::cerr, disk, {}, columns_of_stderr};
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (const std::size_t equals = text.find('='); equals != std::string::npos) console.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  // A line cannot be cleared there.
  if (const auto kind = console.environment.find("TERM"); kind == console.environment.end() || kind->second == "dumb") console.columns = {};
  const int code = piper::tools::run(std::vector<std::string>(argv + 1, argv + argc), console);
  std::cout.flush();
  std::cerr.flush();
  // A loaded LibTorch needs 70 ms for destructors that nothing waits for.
  _exit(code);
}
